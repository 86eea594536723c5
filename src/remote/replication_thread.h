// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "varve/result.h"

namespace varve::remote {

/// The thread that replicates in the background. The first request starts the thread. Thread-safe.
class ReplicationThread {
 public:
  struct Work {
    /// Replicates once. After an error other than kLocked, the thread calls `replicate` again
    /// later: after minutes, or with the next request, if is_passing() is false.
    std::function<Result<void>()> replicate{};
    /// Logs an error of `replicate`, unless the thread is stopping.
    std::function<void(const Error&)> failed{};
    std::function<void()> upload_early{};
  };
  explicit ReplicationThread(Work work) : work_(std::move(work)) {}
  ReplicationThread(const ReplicationThread&) = delete;
  ReplicationThread& operator=(const ReplicationThread&) = delete;
  ~ReplicationThread() { stop({}); }

  /// Requests a replication.
  void request_head();
  /// Requests an upload of segments of open versions.
  void request_early();
  /// Ends the thread, for good. `interrupt`, if any, is called to end a running request.
  void stop(const std::function<void()>& interrupt);

 private:
  void request(bool ReplicationThread::*what);
  void run(const std::stop_token& stop);
  /// Waits for a request, and takes the request. Returns false if stopped.
  [[nodiscard]] bool wait_for_head(const std::stop_token& stop);

  const Work work_;
  std::mutex mutex_;  // Innermost. Guards the members below.
  std::condition_variable_any wake_;
  bool stopping_ = false;
  bool wants_head_ = false;
  bool wants_early_ = false;
  std::jthread thread_;
};

}  // namespace varve::remote
