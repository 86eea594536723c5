// SPDX-License-Identifier: Apache-2.0
#include "base/bounded_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace varve::base {
namespace {

TEST(BoundedQueue, ItemsComeOutInTheOrderTheyWentIn) {
  BoundedQueue<int> queue(8);
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(queue.push(i));
  for (int i = 0; i < 8; ++i) EXPECT_EQ(queue.pop(), i);
}

TEST(BoundedQueue, MoveOnlyItemsPass) {
  BoundedQueue<std::unique_ptr<int>> queue(1);
  ASSERT_TRUE(queue.push(std::make_unique<int>(5)));
  EXPECT_EQ(**queue.pop(), 5);
}

TEST(BoundedQueue, NeverHoldsMoreThanItsCapacity) {
  constexpr int kItems = 5000;
  constexpr int kCapacity = 3;
  BoundedQueue<int> queue(kCapacity);
  std::atomic<int> pushed{0};
  std::thread producer([&] {
    for (int i = 0; i < kItems; ++i) {
      queue.push(i);
      ++pushed;
    }
  });
  for (int i = 0; i < kItems; ++i) {
    // The pushed items are the popped ones and at most a full queue.
    EXPECT_LE(pushed.load(), i + kCapacity);
    EXPECT_EQ(queue.pop(), i);
  }
  producer.join();
}

TEST(BoundedQueue, CloseLetsTheRestOutAndTakesNothingMore) {
  BoundedQueue<int> queue(4);
  ASSERT_TRUE(queue.push(1));
  ASSERT_TRUE(queue.push(2));
  queue.close();
  EXPECT_FALSE(queue.push(3));
  EXPECT_EQ(queue.pop(), 1);
  EXPECT_EQ(queue.pop(), 2);
  EXPECT_EQ(queue.pop(), std::nullopt);
}

TEST(BoundedQueue, CloseWakesAWaitingConsumer) {
  BoundedQueue<int> queue(1);
  std::optional<int> got = 7;
  std::thread consumer([&] { got = queue.pop(); });
  queue.close();
  consumer.join();
  EXPECT_EQ(got, std::nullopt);
}

TEST(BoundedQueue, CloseWakesAWaitingProducer) {
  BoundedQueue<int> queue(1);
  ASSERT_TRUE(queue.push(1));
  bool taken = true;
  std::thread producer([&] { taken = queue.push(2); });
  queue.close();
  producer.join();
  EXPECT_FALSE(taken);
}

TEST(BoundedQueue, SeveralThreadsLoseAndDoubleNothing) {
  constexpr int kItemsEach = 2000;
  constexpr int kProducers = 3;
  BoundedQueue<int> queue(5);
  std::vector<std::thread> producers;
  for (int p = 0; p < kProducers; ++p) {
    producers.emplace_back([&queue, p] {
      for (int i = 0; i < kItemsEach; ++i) queue.push(p * kItemsEach + i);
    });
  }
  std::vector<std::atomic<int>> seen(kProducers * kItemsEach);
  std::vector<std::thread> consumers;
  for (int c = 0; c < 2; ++c) {
    consumers.emplace_back([&] {
      while (const auto item = queue.pop()) ++seen[static_cast<std::size_t>(*item)];
    });
  }
  for (auto& producer : producers) producer.join();
  queue.close();
  for (auto& consumer : consumers) consumer.join();
  for (const auto& count : seen) ASSERT_EQ(count.load(), 1);
}

}  // namespace
}  // namespace varve::base
