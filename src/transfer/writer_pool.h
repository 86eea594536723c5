// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <vector>

#include "base/thread_pool.h"

namespace varve::transfer {

/// Threads for writing files while the restore reads the next files. Bounds the bytes and the
/// number of queued tasks. A single thread calls run(), flush() and drain().
class WriterPool {
 public:
  using Task = std::function<void()>;
  static constexpr std::size_t kWaitingBytesMax = 16U << 20;
  static constexpr std::size_t kWaitingTasksMax = 512;

  explicit WriterPool(std::size_t threads) : threads_(threads, "varve-writer") {}
  /// Runs the queued tasks.
  ~WriterPool() { drain(); }

  /// Queues the task. Tasks run in any order. Waits while too much is queued. `bytes`: the memory
  /// held by the task.
  void run(std::size_t bytes, Task task);
  /// Submits all tasks held back, so another thread can wait for the tasks' results.
  void flush();
  /// Waits until all tasks are done.
  void drain();

 private:
  // Number of small tasks submitted together, because waking a thread costs more than writing a
  // small file.
  static constexpr std::size_t kBatchTasks = 16;
  static constexpr std::size_t kBatchBytes = 256U << 10;

  std::vector<Task> batch_;
  std::size_t batch_bytes_ = 0;
  std::mutex mutex_;
  std::condition_variable less_;
  std::size_t bytes_ = 0;
  std::size_t tasks_ = 0;
  // Declared last, and so destroyed first: the threads use the members above.
  base::ThreadPool threads_;
};

}  // namespace varve::transfer
