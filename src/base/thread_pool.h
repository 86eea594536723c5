// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace varve::base {

/// Starts tasks in the order of run(), on a fixed number of threads. The destructor runs the queued
/// tasks and joins the threads. Tasks must not throw; the pool logs an exception and continues.
class ThreadPool {
 public:
  ThreadPool(std::size_t threads, const char* name);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  void run(std::function<void()> task);
  [[nodiscard]] std::size_t threads() const { return threads_.size(); }

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

/// Names the calling thread for debuggers and profilers (at most 15 bytes are kept).
void name_this_thread(const char* name);

}  // namespace varve::base
