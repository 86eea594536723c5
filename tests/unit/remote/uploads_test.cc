// SPDX-License-Identifier: Apache-2.0
#include "remote/uploads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace varve::remote {
namespace {

// Requests that wait until so many of them run at once.
class Meeting {
 public:
  Result<void> attend(std::uint64_t bytes, std::size_t wanted) {
    std::unique_lock lock(mutex_);
    ++present_;
    bytes_ += bytes;
    most_ = std::max(most_, present_);
    most_bytes_ = std::max(most_bytes_, bytes_);
    changed_.notify_all();
    changed_.wait(lock, [&] { return most_ >= wanted; });
    --present_;
    bytes_ -= bytes;
    return {};
  }
  std::size_t most() const { return most_; }
  std::uint64_t most_bytes() const { return most_bytes_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t present_ = 0;
  std::size_t most_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t most_bytes_ = 0;
};

TEST(Uploads, ManySmallRequestsRunAtOnceUpToTheLimit) {
  Meeting meeting;
  Uploads uploads({.requests = 5, .bytes = 1000});
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(uploads.begin(
        1, [&] { return meeting.attend(1, 5); }, nullptr));
  }
  ASSERT_TRUE(uploads.finish());
  EXPECT_EQ(meeting.most(), 5U);
}

TEST(Uploads, BytesInProgressAreBounded) {
  Meeting meeting;
  Uploads uploads({.requests = 16, .bytes = 100});
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(uploads.begin(
        50, [&] { return meeting.attend(50, 2); }, nullptr));
  }
  ASSERT_TRUE(uploads.finish());
  EXPECT_EQ(meeting.most_bytes(), 100U);
}

TEST(Uploads, LargerObjectThanTheLimitGoesAlone) {
  Uploads uploads({.requests = 4, .bytes = 10});
  std::atomic<int> done = 0;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(uploads.begin(
        100,
        [&]() -> Result<void> {
          ++done;
          return {};
        },
        nullptr));
  }
  ASSERT_TRUE(uploads.finish());
  EXPECT_EQ(done, 3);
}

TEST(Uploads, AcknowledgementsRunInTheCallingThreadAfterSuccessOnly) {
  const auto caller = std::this_thread::get_id();
  int acknowledged = 0;
  Uploads uploads({.requests = 3, .bytes = 10});
  for (int i = 0; i < 6; ++i) {
    const auto begun = uploads.begin(
        1,
        [i]() -> Result<void> {
          if (i == 5) return Error(ErrorCode::kUnavailable, "no answer");
          return {};
        },
        [&]() -> Result<void> {
          EXPECT_EQ(std::this_thread::get_id(), caller);
          ++acknowledged;
          return {};
        });
    ASSERT_TRUE(begun);
  }
  const auto finished = uploads.finish();
  ASSERT_FALSE(finished);
  EXPECT_EQ(finished.error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(acknowledged, 5);
  // The error stays.
  EXPECT_FALSE(uploads.begin(
      1, [] { return Result<void>(); }, nullptr));
}

TEST(Uploads, OneRequestAtOnceRunsInTheCallingThread) {
  const auto caller = std::this_thread::get_id();
  Uploads uploads({.requests = 1, .bytes = 10});
  ASSERT_TRUE(uploads.begin(
      1,
      [&]() -> Result<void> {
        EXPECT_EQ(std::this_thread::get_id(), caller);
        return {};
      },
      nullptr));
  ASSERT_TRUE(uploads.finish());
}

}  // namespace
}  // namespace varve::remote
