// SPDX-License-Identifier: Apache-2.0
#include "base/recurring_tasks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <semaphore>
#include <set>
#include <thread>
#include <vector>

namespace varve::base {
namespace {

using Next = RecurringTasks::Next;

RecurringTasks::Time now() { return std::chrono::steady_clock::now(); }
RecurringTasks::Time never() { return now() + std::chrono::hours(1000); }

TEST(RecurringTasks, ATaskRunsAtTheTimesThatItReturns) {
  RecurringTasks tasks(2, "test");
  std::counting_semaphore<> runs(0);
  const auto task = tasks.add([&] {
    runs.release();
    return Next{now() + std::chrono::milliseconds(1)};
  });
  for (int i = 0; i < 5; ++i) runs.acquire();
  tasks.remove(*task);
}

TEST(RecurringTasks, ATaskDoesNotWaitForALaterOne) {
  RecurringTasks tasks(2, "test");
  std::counting_semaphore<> runs(0);
  const auto late = tasks.add([] { return Next{never()}; });
  const auto early = tasks.add([&] {
    runs.release();
    return Next{now() + std::chrono::milliseconds(1)};
  });
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(runs.try_acquire_for(std::chrono::seconds(30)));
  tasks.remove(*early);
  tasks.remove(*late);
}

TEST(RecurringTasks, WakingRunsATaskBeforeItsTime) {
  RecurringTasks tasks(2, "test");
  std::counting_semaphore<> runs(0);
  const auto task = tasks.add([&] {
    runs.release();
    return Next{never()};
  });
  for (int i = 0; i < 5; ++i) {
    runs.acquire();
    tasks.wake(*task);
  }
  runs.acquire();
  tasks.remove(*task);
}

TEST(RecurringTasks, ATaskThatIsWokenDuringItsRunRunsAgain) {
  RecurringTasks tasks(1, "test");
  std::counting_semaphore<> begun(0);
  std::counting_semaphore<> may_end(0);
  const auto task = tasks.add([&] {
    begun.release();
    may_end.acquire();
    return Next{never()};
  });
  begun.acquire();
  tasks.wake(*task);
  may_end.release();
  begun.acquire();
  may_end.release();
  tasks.remove(*task);
}

TEST(RecurringTasks, WakingDoesNotShortenAPauseThatATaskInsistsOn) {
  RecurringTasks tasks(1, "test");
  std::atomic<int> runs = 0;
  std::counting_semaphore<> other(0);
  std::counting_semaphore<> first(0);
  const auto task = tasks.add([&] {
    ++runs;
    first.release();
    return Next{never(), false};
  });
  first.acquire();
  tasks.wake(*task);
  // The only thread runs this task after it would have run the first one.
  const auto later = tasks.add([&] {
    other.release();
    return Next{never()};
  });
  other.acquire();
  tasks.wake(*task);
  tasks.wake(*later);
  other.acquire();
  EXPECT_EQ(runs, 1);
  tasks.remove(*task);
  tasks.remove(*later);
}

TEST(RecurringTasks, RemovingWaitsForARunAndEndsTheTask) {
  RecurringTasks tasks(1, "test");
  std::counting_semaphore<> begun(0);
  std::atomic<bool> running = false;
  const auto task = tasks.add([&] {
    running = true;
    begun.release();
    std::this_thread::yield();
    running = false;
    return Next{now()};
  });
  begun.acquire();
  tasks.remove(*task);
  EXPECT_FALSE(running);
  tasks.wake(*task);
  tasks.remove(*task);
}

TEST(RecurringTasks, ThousandsOfTasksShareTheThreads) {
  constexpr std::size_t kTasks = 5000;
  RecurringTasks tasks(4, "test");
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::counting_semaphore<> runs(0);
  std::vector<std::shared_ptr<RecurringTasks::Task>> added;
  for (std::size_t i = 0; i < kTasks; ++i) {
    added.push_back(tasks.add([&] {
      const std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
      runs.release();
      return Next{never()};
    }));
  }
  for (std::size_t i = 0; i < kTasks; ++i) runs.acquire();
  for (const auto& task : added) tasks.remove(*task);
  EXPECT_LE(threads.size(), 4U);
}

TEST(RecurringTasks, ATaskThatTakesLongHoldsUpNoOther) {
  RecurringTasks tasks(2, "test");
  std::counting_semaphore<> may_end(0);
  std::counting_semaphore<> runs(0);
  const auto slow = tasks.add([&] {
    may_end.acquire();
    return Next{never()};
  });
  const auto quick = tasks.add([&] {
    runs.release();
    return Next{now()};
  });
  for (int i = 0; i < 100; ++i) runs.acquire();
  may_end.release();
  tasks.remove(*slow);
  tasks.remove(*quick);
}

}  // namespace
}  // namespace varve::base
