// SPDX-License-Identifier: Apache-2.0
#pragma once

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>

#include <chrono>
#include <functional>

namespace varve::fs {

/// Receives requests, and polls for the next request for a short time before sleeping. A program
/// copying many small files sends its next request some microseconds after each reply. Waking a
/// sleeping thread takes longer, and several times longer in a virtual machine. Must be used by one
/// thread at a time.
///
/// The pauses between requests decide whether the receiver polls. A thread preempted while polling
/// runs on a busy machine, and stops polling for a while.
class EagerReceiver {
 public:
  using Clock = std::chrono::steady_clock;
  struct Calls {
    /// As LoopPool::Calls::receive, but returns -EAGAIN at once if there is no request.
    std::function<int(fuse_buf* buffer)> try_receive;
    /// Sleeps until there is a request. Returns false after a signal.
    std::function<bool()> wait;
    std::function<Clock::time_point()> now = Clock::now;
  };

  /// Polls for at most `longest` before sleeping; zero = never polls.
  EagerReceiver(Calls calls, std::chrono::microseconds longest);

  /// Receives one request, as LoopPool::Calls::receive.
  [[nodiscard]] int receive(fuse_buf* buffer);

 private:
  [[nodiscard]] int poll(fuse_buf* buffer, Clock::time_point begin);
  void learn(Clock::duration pause);

  const Calls calls_;
  const Clock::duration longest_;
  int score_ = 0;  // Positive if recent requests came soon.
};

}  // namespace varve::fs
