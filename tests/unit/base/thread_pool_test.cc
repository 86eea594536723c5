// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <future>
#include <stdexcept>
#include <string>
#include <vector>

namespace varve::base {
namespace {

TEST(ThreadPool, DestructorRunsWhatIsQueued) {
  std::atomic<int> ran{0};
  {
    ThreadPool pool(3, "test");
    EXPECT_EQ(pool.threads(), 3U);
    for (int i = 0; i < 1000; ++i) pool.run([&] { ++ran; });
  }
  EXPECT_EQ(ran.load(), 1000);
}

TEST(ThreadPool, OneThreadKeepsTheOrder) {
  std::vector<int> order;
  {
    ThreadPool pool(1, "test");
    for (int i = 0; i < 100; ++i) pool.run([&order, i] { order.push_back(i); });
  }
  ASSERT_EQ(order.size(), 100U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(ThreadPool, TasksRunBesideEachOther) {
  // Each task waits for the other, so both end only with two threads.
  std::promise<void> first;
  std::promise<void> second;
  std::atomic<int> met{0};
  {
    ThreadPool pool(2, "test");
    pool.run([&] {
      first.set_value();
      second.get_future().wait();
      ++met;
    });
    pool.run([&] {
      second.set_value();
      first.get_future().wait();
      ++met;
    });
  }
  EXPECT_EQ(met.load(), 2);
}

TEST(ThreadPool, ThrowingTaskDoesNotStopTheNext) {
  std::atomic<bool> ran{false};
  {
    ThreadPool pool(1, "test");
    pool.run([] { throw std::runtime_error("a task of the test"); });
    pool.run([&] { ran = true; });
  }
  EXPECT_TRUE(ran.load());
}

TEST(ThreadPool, TaskMayQueueAnother) {
  std::atomic<int> ran{0};
  {
    ThreadPool pool(1, "test");
    pool.run([&] {
      ++ran;
      pool.run([&] { ++ran; });
    });
  }
  EXPECT_EQ(ran.load(), 2);
}

TEST(ThreadPool, ThreadsBearItsNameCutToFifteenBytes) {
  std::string name;
  {
    ThreadPool pool(1, "a-very-long-thread-name");
    pool.run([&] {
      std::array<char, 32> buffer{};
      pthread_getname_np(pthread_self(), buffer.data(), buffer.size());
      name = buffer.data();
    });
  }
  EXPECT_EQ(name, "a-very-long-thr");
}

}  // namespace
}  // namespace varve::base
