// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include <pthread.h>

#include <exception>
#include <string>
#include <system_error>

#include "base/log.h"

namespace varve::base {

void name_this_thread(const char* name) {
  pthread_setname_np(pthread_self(), std::string(name).substr(0, 15).c_str());
}

ThreadPool::ThreadPool(std::size_t threads, const char* name) {
  threads_.reserve(threads);
  for (std::size_t i = 0; i < threads; ++i) {
    try {
      threads_.emplace_back([this, thread_name = std::string(name)] {
        name_this_thread(thread_name.c_str());
        work();
      });
    } catch (const std::system_error& error) {
      if (threads_.empty()) throw;
      log(LogLevel::kWarning, std::string("only ") + std::to_string(i) + " threads of " +
                                  std::to_string(threads) + " for " + name + ": " + error.what());
      return;
    }
  }
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  ready_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void ThreadPool::run(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  ready_.notify_one();
}

void ThreadPool::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    ready_.wait(lock, [&] { return !tasks_.empty() || stopping_; });
    if (tasks_.empty()) return;
    auto task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    try {
      task();
    } catch (const std::exception& e) {
      log(LogLevel::kError, std::string("a background task failed: ") + e.what());
    }
    task = nullptr;
    lock.lock();
  }
}

}  // namespace varve::base
