// SPDX-License-Identifier: Apache-2.0
// Runs the kernel's requests and sends the replies.
#pragma once

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>

#include <chrono>
#include <exception>
#include <functional>
#include <memory>

#include "base/metrics.h"
#include "base/thread_pool.h"
#include "fs/reply.h"
#include "fs/request_metrics.h"
#include "varve/repository.h"
#include "varve/result.h"

namespace varve::fs {

/// Runs each operation, sends the reply exactly once, and measures the time until the reply.
/// Operations returning Later continue in a pool of threads. Thread-safe.
class Responder {
 public:
  /// Adds the metrics of the requests to those of the repository.
  explicit Responder(Repository& repository);

  /// Runs `work`, a function returning the Result<Reply> of an operation, and sends the reply. An
  /// exception must not pass through libfuse's C frames, so a stray exception becomes EIO.
  template <typename Work>
  void answer(fuse_req_t req, Operation operation, const Work& work) {
    metrics_.in_progress().add();
    run({req, operation, Clock::now()}, work);
  }
  /// Runs `task`, a task without a request, in a thread.
  void run_in_background(std::function<void()> task) { general_->run(std::move(task)); }
  /// Runs the queued work and ends the threads. No request may be answered after the call.
  void shut_down();

 private:
  using Clock = std::chrono::steady_clock;
  struct Request {
    fuse_req_t req;
    Operation operation;
    Clock::time_point arrived;
  };

  template <typename Work>
  void run(const Request& request, const Work& work) {
    try {
      finish(request, work());
    } catch (const std::exception& stray) {
      fail(request, stray);
    }
  }
  void finish(const Request& request, Result<Reply> result);
  void fail(const Request& request, const std::exception& stray);
  /// Sends the reply, and counts the request as answered.
  void send(const Request& request, const Result<Reply>& result);

  // Shared with the repository, which outlives the mount.
  const std::shared_ptr<base::Metrics> registry_ = std::make_shared<base::Metrics>();
  const RequestMetrics metrics_;
  std::unique_ptr<base::ThreadPool> general_;
  std::unique_ptr<base::ThreadPool> sealed_;
};

}  // namespace varve::fs
