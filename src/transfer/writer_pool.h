// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <vector>

#include "base/thread_pool.h"

namespace varve::transfer {

/// Threads that make files while the next ones are read. What waits is bounded by its bytes
/// and by its number. run() and drain() are for one thread.
class WriterPool {
 public:
  using Task = std::function<void()>;
  static constexpr std::size_t kWaitingBytesMax = 16U << 20;
  static constexpr std::size_t kWaitingTasksMax = 512;

  explicit WriterPool(std::size_t threads) : threads_(threads, "varve-writer") {}
  /// Runs what waits.
  ~WriterPool() { drain(); }

  /// Runs the task soon, in any order with others; waits while too much is queued. `bytes` is
  /// the memory that the task holds.
  void run(std::size_t bytes, Task task);
  /// Hands over what is still held back, so that somebody else may wait for it.
  void flush();
  /// Waits until all is done.
  void drain();

 private:
  // Small tasks are handed over several at a time: waking a thread costs more than a file.
  static constexpr std::size_t kBatchTasks = 16;
  static constexpr std::size_t kBatchBytes = 256U << 10;

  std::vector<Task> batch_;
  std::size_t batch_bytes_ = 0;
  std::mutex mutex_;
  std::condition_variable less_;
  std::size_t bytes_ = 0;
  std::size_t tasks_ = 0;
  base::ThreadPool threads_;  // Goes first: its threads use what stands above.
};

}  // namespace varve::transfer
