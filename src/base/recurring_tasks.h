// SPDX-License-Identifier: Apache-2.0
// Recurring tasks of many objects, on a few threads.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace varve::base {

/// Runs each task again and again, at the times returned by the task. At most one run of a task is
/// in progress. A task may take long: the other threads then run the tasks that are due. A task
/// must not wait for a run of another task, and must not throw. Thread-safe.
///
/// A thread starts with a new task, until the number of threads reaches the limit.
class RecurringTasks {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// The next run requested by a task.
  struct Next {
    Time time;
    bool may_be_sooner = true;  ///< Whether wake() brings the run forward.
  };
  class Task;

  RecurringTasks(std::size_t threads_max, const char* name);
  RecurringTasks(const RecurringTasks&) = delete;
  RecurringTasks& operator=(const RecurringTasks&) = delete;
  /// Joins the threads. Every task must have been removed.
  ~RecurringTasks();

  /// Adds a task, whose first run is due now.
  [[nodiscard]] std::shared_ptr<Task> add(std::function<Next()> run);
  /// Has a task run as soon as a thread is free, and once more if the task runs at present.
  void wake(Task& task);
  /// Ends a task: waits for a run in progress, and starts no further run. A second call does
  /// nothing. A task must not remove itself.
  void remove(Task& task);

 private:
  void add_thread();
  void work();
  void wait_for_task(std::unique_lock<std::mutex>& lock);
  void run(std::unique_lock<std::mutex>& lock, std::shared_ptr<Task> task);

  const std::size_t threads_max_;
  const std::string name_;
  std::mutex mutex_;  // Guards the members below, and the members of all tasks.
  std::condition_variable due_;
  std::condition_variable ended_;
  std::set<std::pair<Time, std::shared_ptr<Task>>> waiting_;  // The tasks not running.
  std::size_t tasks_ = 0;
  // A thread waits for the time of the first task; all other threads wait for due_.
  bool timed_ = false;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace varve::base
