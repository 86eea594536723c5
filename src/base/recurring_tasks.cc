// SPDX-License-Identifier: Apache-2.0
#include "base/recurring_tasks.h"

#include <system_error>
#include <utility>

#include "base/assert.h"
#include "base/thread_pool.h"

namespace varve::base {

class RecurringTasks::Task : public std::enable_shared_from_this<Task> {
 public:
  explicit Task(std::function<Next()> task) : run(std::move(task)) {}

  const std::function<Next()> run;
  Next next{std::chrono::steady_clock::now()};
  bool running = false;
  bool woken = false;  // During the run.
  bool removed = false;
};

RecurringTasks::RecurringTasks(std::size_t threads_max, const char* name)
    : threads_max_(threads_max), name_(name) {}

RecurringTasks::~RecurringTasks() {
  {
    const std::lock_guard lock(mutex_);
    VARVE_ASSERT(tasks_ == 0);
    stopping_ = true;
  }
  due_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void RecurringTasks::add_thread() {
  if (threads_.size() >= threads_max_ || threads_.size() > tasks_) return;
  try {
    threads_.emplace_back([this] {
      name_this_thread(name_.c_str());
      work();
    });
  } catch (const std::system_error&) {
    if (threads_.empty()) throw;  // Otherwise, the other threads run the task.
  }
}

std::shared_ptr<RecurringTasks::Task> RecurringTasks::add(std::function<Next()> run) {
  auto task = std::make_shared<Task>(std::move(run));
  const std::lock_guard lock(mutex_);
  add_thread();
  waiting_.emplace(task->next.time, task);
  ++tasks_;
  due_.notify_all();
  return task;
}

void RecurringTasks::wake(Task& task) {
  const std::lock_guard lock(mutex_);
  if (task.removed) return;
  task.woken = true;
  if (task.running || !task.next.may_be_sooner) return;
  const auto now = std::chrono::steady_clock::now();
  if (task.next.time <= now) return;
  const auto found = waiting_.find({task.next.time, task.shared_from_this()});
  VARVE_ASSERT(found != waiting_.end());
  auto node = waiting_.extract(found);
  node.value().first = task.next.time = now;
  waiting_.insert(std::move(node));
  due_.notify_all();
}

void RecurringTasks::remove(Task& task) {
  std::unique_lock lock(mutex_);
  if (!std::exchange(task.removed, true)) {
    --tasks_;
    waiting_.erase({task.next.time, task.shared_from_this()});
  }
  ended_.wait(lock, [&] { return !task.running; });
}

void RecurringTasks::wait_for_task(std::unique_lock<std::mutex>& lock) {
  if (waiting_.empty() || timed_) {
    due_.wait(lock);
    return;
  }
  timed_ = true;
  const auto time = waiting_.begin()->first;
  due_.wait_until(lock, time);
  timed_ = false;
}

void RecurringTasks::run(std::unique_lock<std::mutex>& lock, std::shared_ptr<Task> task) {
  task->running = true;
  task->woken = false;
  due_.notify_one();  // Another thread waits for the next task.
  lock.unlock();
  const Next next = task->run();
  lock.lock();
  task->running = false;
  if (task->removed) {
    ended_.notify_all();
    return;
  }
  task->next = next;
  if (task->woken && next.may_be_sooner) task->next.time = std::chrono::steady_clock::now();
  const auto placed = waiting_.emplace(task->next.time, task).first;
  // One thread may be waiting for a later task, and all other threads without a timeout.
  if (placed == waiting_.begin()) due_.notify_all();
}

void RecurringTasks::work() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (waiting_.empty() || waiting_.begin()->first > std::chrono::steady_clock::now()) {
      wait_for_task(lock);
      continue;
    }
    run(lock, waiting_.extract(waiting_.begin()).value().second);
  }
}

}  // namespace varve::base
