// SPDX-License-Identifier: Apache-2.0
// The threads for receiving and answering the kernel's requests.
#pragma once

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace varve::fs {

/// A pool with one leader. The leader receives each request and answers the request itself. Without
/// a hand-over, one leader is faster than several threads receiving in turn. When a request keeps
/// the leader waiting for longer than `patience`, for example for the disk, another thread becomes
/// the leader. The late thread becomes a follower after its request. A waiting request therefore
/// delays other requests by at most twice `patience`, with up to `threads_max` waiting requests at
/// once. A leader that computes, or waits only for a processor, gets twenty times as long: on an
/// overloaded machine, another leader would only add load.
///
/// A watchdog thread checks the leader every `patience` while requests come. After a time without
/// requests, the watchdog sleeps until the leader wakes the watchdog. CheckSchedule decides when
/// the checks become rarer.
class LoopPool {
 public:
  struct Calls {
    /// Receives a request into `buffer`. Returns a positive number for a request, -EINTR to be
    /// called again, or any other number to end the pool. Allocates buffer->mem with malloc(3) if
    /// null.
    std::function<int(fuse_buf* buffer)> receive;
    /// Answers a request.
    std::function<void(const fuse_buf& request)> process;
    /// Returns true if the pool must end. Called before each receive().
    std::function<bool()> ended;
  };
  struct Limits {
    std::chrono::milliseconds patience{2};  ///< Time for which a request may delay other requests.
    std::size_t threads_max = 32;           ///< Limit on the number of threads.
  };

  LoopPool(Calls calls, const Limits& limits);
  LoopPool(const LoopPool&) = delete;
  LoopPool& operator=(const LoopPool&) = delete;
  ~LoopPool();

  /// Runs the pool, with the calling thread as the first leader. Returns when the pool has ended
  /// and every received request is answered. Must be called only once.
  void run();

  /// Sends `signal` to the thread waiting in receive(), if any. May be called from any thread.
  void interrupt(int signal);

 private:
  void work(fuse_buf& buffer);
  [[nodiscard]] bool take_lead(fuse_buf& buffer);
  [[nodiscard]] bool lead(fuse_buf& buffer);
  void end();
  void watch();
  [[nodiscard]] bool leader_waits() const;
  void pass_lead(std::uint64_t turn);
  void add_thread();

  const Calls calls_;
  const Limits limits_;

  // Odd while the leader processes a request. The leader increments the number before and after
  // each request. The watchdog takes the lead away by an increment too: the leader then finds a
  // value different from its own.
  std::atomic<std::uint64_t> turn_{0};
  std::atomic<bool> watchdog_sleeps_{false};

  std::mutex mutex_;  // Guards all members below.
  std::condition_variable lead_is_free_;
  std::condition_variable watchdog_wakes_;
  bool nobody_leads_ = true;
  bool ended_ = false;
  pthread_t leader_{};
  pid_t leader_tid_ = 0;
  std::size_t followers_ = 0;
  std::vector<std::thread> threads_;
  std::thread watchdog_;
};

}  // namespace varve::fs
