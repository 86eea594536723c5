// SPDX-License-Identifier: Apache-2.0
#pragma once

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>

#include <chrono>
#include <functional>

namespace varve::fs {

/// Receives requests, and asks for the next one again and again for a short while before it
/// sleeps, as long as that pays: a program that copies many small files sends its next request
/// some microseconds after each answer, and waking a sleeping thread takes longer than that, in
/// a virtual machine several times. For one thread at a time.
///
/// Whether it pays is learned from the pauses between requests. A thread that finds itself put
/// aside while it asks is on a machine with other work to do, and leaves it alone for a while.
class EagerReceiver {
 public:
  using Clock = std::chrono::steady_clock;
  struct Calls {
    /// As LoopPool::Calls::receive, but -EAGAIN at once where there is no request.
    std::function<int(fuse_buf* buffer)> try_receive;
    /// Sleeps until there is one; false after a signal.
    std::function<bool()> wait;
    std::function<Clock::time_point()> now = Clock::now;
  };

  /// Asks for at most `longest`; zero: always sleeps.
  EagerReceiver(Calls calls, std::chrono::microseconds longest);

  /// As LoopPool::Calls::receive.
  [[nodiscard]] int receive(fuse_buf* buffer);

 private:
  [[nodiscard]] int ask(fuse_buf* buffer, Clock::time_point begin);
  void learn(Clock::duration pause);

  const Calls calls_;
  const Clock::duration longest_;
  int score_ = 0;  // Above zero: requests came soon lately.
};

}  // namespace varve::fs
