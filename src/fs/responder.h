// SPDX-License-Identifier: Apache-2.0
// Runs the kernel's requests and sends their replies.
#pragma once

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>

#include <exception>
#include <functional>
#include <memory>

#include "base/thread_pool.h"
#include "fs/reply.h"
#include "varve/result.h"

namespace varve::fs {

/// Runs each operation and sends its reply exactly once. Operations that return Later continue in
/// a pool of threads. Thread-safe.
class Responder {
 public:
  Responder();

  /// Runs `work`, which returns the Result<Reply> of an operation, and sends the reply. An
  /// exception must not pass through libfuse's C frames, so a stray exception becomes EIO.
  /// `operation` is the name for the log. Lifetime: `operation` must be a literal.
  template <typename Work>
  void answer(fuse_req_t req, const char* operation, const Work& work) {
    try {
      finish(req, operation, work());
    } catch (const std::exception& stray) {
      fail(req, operation, stray);
    }
  }
  /// Runs `task`, which belongs to no request, in a thread.
  void run_in_background(std::function<void()> task) { general_->run(std::move(task)); }
  /// Runs the queued work and ends the threads. Nothing may be answered after it.
  void shut_down();

 private:
  void finish(fuse_req_t req, const char* operation, Result<Reply> result);
  static void fail(fuse_req_t req, const char* operation, const std::exception& stray);

  std::unique_ptr<base::ThreadPool> general_;
  std::unique_ptr<base::ThreadPool> sealed_;
};

}  // namespace varve::fs
