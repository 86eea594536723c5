// SPDX-License-Identifier: Apache-2.0
// The threads that read and answer the kernel's requests.
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

/// Leader and followers. One thread, the leader, receives a request and answers it itself, again
/// and again: nothing is handed over, which is faster than several threads that receive in turn.
/// When one request keeps the leader waiting for longer than `patience`, say for the disk,
/// another thread takes the lead, and the late one follows when it is done. So a request that
/// waits delays others by at most twice `patience`, up to `threads_max` that wait at once. A
/// leader that computes, or would if it had a processor, gets twenty times as long: on a machine
/// with too much to do another leader would only make it more.
///
/// A watchdog sees to that. It looks every `patience` while requests come, and sleeps when none
/// have come for a while; a leader that finds it asleep wakes it.
class LoopPool {
 public:
  struct Calls {
    /// > 0: `buffer` holds a request; -EINTR: again; anything else ends the pool. Makes
    /// buffer->mem if it is null, which is freed with free(3).
    std::function<int(fuse_buf* buffer)> receive;
    std::function<void(const fuse_buf& request)> process;
    /// True once the pool is to end; asked before each receive().
    std::function<bool()> ended;
  };
  struct Limits {
    std::chrono::milliseconds patience{2};
    std::size_t threads_max = 32;
  };

  LoopPool(Calls calls, const Limits& limits);
  LoopPool(const LoopPool&) = delete;
  LoopPool& operator=(const LoopPool&) = delete;
  ~LoopPool();

  /// Leads in the calling thread, then follows as any other. Returns when the pool has ended
  /// and every request that was received is processed. Once only.
  void run();

  /// Sends `signal` to the thread that waits in receive(), if one does. From any thread.
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

  // Odd while the leader processes a request. The leader counts it up before and after each;
  // counting it up on a leader's behalf takes the lead from it, since the leader then finds
  // another value than it left.
  std::atomic<std::uint64_t> turn_{0};
  std::atomic<bool> watchdog_sleeps_{false};

  std::mutex mutex_;  // Guards all below.
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
