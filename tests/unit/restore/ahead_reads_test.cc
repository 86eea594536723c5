// SPDX-License-Identifier: Apache-2.0
// Tests reads in advance.
#include "restore/ahead_reads.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "restore/memory_meter.h"
#include "support/fake_source.h"
#include "support/same_bytes.h"

namespace varve::restore {
namespace {

constexpr std::size_t kSliceRoom = format::kFrameRawBytesMax;

/// A container with some frames. Each frame is a slice.
class AheadReadsTest : public ::testing::Test {
 protected:
  AheadReadsTest() {
    std::mt19937 random(3);
    for (std::uint32_t i = 0; i < 6; ++i) {
      Bytes chunk(format::kFrameRawBytesMax - i);
      for (std::byte& b : chunk) b = static_cast<std::byte>(random());
      source_.place(ChunkId::make(VersionNumber{1}, i), chunk);
    }
    source_.end_container();
    header_ = *source_.header(ContainerNumber{0});
  }

  AheadReads make(std::size_t slots, base::ThreadPool* workers) {
    return {&reader_, &source_, &buffers_, workers, {slots, kSliceRoom}};
  }
  static Slice slice(std::uint32_t frame) { return {frame, frame}; }
  std::vector<AheadReads::Planned> frames(std::uint32_t begin, std::uint32_t end,
                                          std::uint32_t area) {
    std::vector<AheadReads::Planned> planned;
    for (; begin < end; ++begin) planned.push_back({header_, slice(begin), area});
    return planned;
  }
  void expect_stored(std::span<const std::byte> bytes, std::uint32_t frame) {
    Bytes wanted(slice_bytes(*header_, slice(frame)));
    ASSERT_TRUE(source_.read_data(ContainerNumber{0}, header_->frames[frame].offset, wanted));
    EXPECT_TRUE(test::same_bytes(bytes, wanted)) << frame;
  }
  /// Waits until the workers have done all tasks queued so far.
  static void wait_for(base::ThreadPool& workers) {
    std::mutex mutex;
    std::condition_variable done;
    std::size_t left = workers.threads();
    std::unique_lock lock(mutex);
    for (std::size_t i = workers.threads(); i > 0; --i) {
      workers.run([&] {
        std::unique_lock inner(mutex);
        --left;
        done.notify_all();
        done.wait(inner, [&] { return left == 0; });
      });
    }
    done.wait(lock, [&] { return left == 0; });
  }

  MemoryMeter meter_;
  base::Metrics registry_;
  ReadMetrics metrics_{registry_};
  SliceReader reader_{metrics_};
  BufferPool buffers_{0, &meter_};
  FakeSource source_;
  std::shared_ptr<const format::ContainerHeader> header_;
};

TEST_F(AheadReadsTest, WhatWasPlannedIsThereOnceAndNothingElse) {
  base::ThreadPool workers(1, "test");
  auto ahead = make(4, &workers);
  ahead.plan(0, frames(2, 5, 1), 1);
  wait_for(workers);
  EXPECT_EQ(metrics_.requests.value(), 3U);
  for (std::uint32_t frame = 2; frame < 5; ++frame) {
    const auto lease = ahead.take(*header_, slice(frame));
    expect_stored(lease.bytes(), frame);
  }
  EXPECT_TRUE(ahead.take(*header_, slice(2)).bytes().empty());
  EXPECT_TRUE(ahead.take(*header_, slice(5)).bytes().empty());
  EXPECT_TRUE(ahead.take(*header_, {2, 3}).bytes().empty());
  EXPECT_EQ(metrics_.requests.value(), 3U);
}

TEST_F(AheadReadsTest, SlotsThatAreGivenBackAreUsedForTheRest) {
  base::ThreadPool workers(1, "test");
  auto ahead = make(2, &workers);
  ahead.plan(0, frames(0, 6, 1), 1);
  wait_for(workers);
  EXPECT_EQ(metrics_.requests.value(), 2U);
  {
    const auto lease = ahead.take(*header_, slice(0));
    wait_for(workers);
    EXPECT_EQ(metrics_.requests.value(), 2U);  // Both slots hold a slice that is still needed.
    expect_stored(lease.bytes(), 0);
  }
  for (std::uint32_t frame = 1; frame < 6; ++frame) {
    wait_for(workers);
    expect_stored(ahead.take(*header_, slice(frame)).bytes(), frame);
  }
  EXPECT_EQ(metrics_.requests.value(), 6U);
}

TEST_F(AheadReadsTest, WhatIsNotTakenGoesWithItsArea) {
  base::ThreadPool workers(1, "test");
  auto ahead = make(2, &workers);
  ahead.plan(0, frames(0, 2, 1), 1);
  wait_for(workers);
  ahead.plan(1, frames(2, 4, 2), 2);
  wait_for(workers);
  EXPECT_EQ(metrics_.requests.value(), 2U);
  expect_stored(ahead.take(*header_, slice(1)).bytes(), 1);
  wait_for(workers);
  EXPECT_EQ(metrics_.requests.value(), 3U);
  ahead.finish_area(1);
  wait_for(workers);
  EXPECT_EQ(metrics_.requests.value(), 4U);
  EXPECT_TRUE(ahead.take(*header_, slice(0)).bytes().empty());
  expect_stored(ahead.take(*header_, slice(2)).bytes(), 2);
  expect_stored(ahead.take(*header_, slice(3)).bytes(), 3);
}

TEST_F(AheadReadsTest, AreasArePlannedOneAfterTheOtherAndForgottenTogether) {
  base::ThreadPool workers(1, "test");
  auto ahead = make(1, &workers);
  ahead.plan(0, frames(0, 2, 1), 1);
  ahead.plan(0, frames(2, 4, 2), 2);
  ahead.plan(0, frames(4, 5, 3), 3);
  ahead.forget_from(3);
  for (std::uint32_t frame = 0; frame < 4; ++frame) {
    wait_for(workers);
    expect_stored(ahead.take(*header_, slice(frame)).bytes(), frame);
  }
  wait_for(workers);
  EXPECT_EQ(metrics_.requests.value(), 4U);
}

TEST_F(AheadReadsTest, ThePlanOfThePresentAreaReplacesTheOneMadeInAdvance) {
  base::ThreadPool workers(1, "test");
  auto ahead = make(1, &workers);
  ahead.plan(0, frames(0, 3, 1), 1);
  wait_for(workers);
  auto present = frames(3, 4, 1);
  present.push_back(frames(5, 6, 2).front());
  ahead.plan(1, present, 2);
  for (const std::uint32_t frame : {0U, 3U, 5U}) {
    wait_for(workers);
    expect_stored(ahead.take(*header_, slice(frame)).bytes(), frame);
  }
  EXPECT_EQ(metrics_.requests.value(), 3U);
}

TEST_F(AheadReadsTest, TheCallerReadsWhatNoWorkerHasBegun) {
  base::ThreadPool workers(1, "test");
  std::mutex mutex;
  std::unique_lock busy(mutex);
  workers.run([&] { const std::lock_guard lock(mutex); });
  auto ahead = make(2, &workers);
  ahead.plan(0, frames(0, 1, 1), 1);
  expect_stored(ahead.take(*header_, slice(0)).bytes(), 0);
  busy.unlock();
  wait_for(workers);
  EXPECT_EQ(metrics_.requests.value(), 1U);
}

TEST_F(AheadReadsTest, FailedReadsAreNotThere) {
  base::ThreadPool workers(1, "test");
  auto ahead = make(2, &workers);
  source_.move_container(0);  // Reads of the old number now fail with kStale.
  ahead.plan(0, frames(0, 2, 1), 1);
  wait_for(workers);
  EXPECT_EQ(metrics_.requests.value(), 2U);
  EXPECT_TRUE(ahead.take(*header_, slice(0)).bytes().empty());
  EXPECT_TRUE(ahead.take(*header_, slice(1)).bytes().empty());
}

TEST_F(AheadReadsTest, TheCallerReadsEachSliceOfAFailedRequest) {
  base::ThreadPool workers(1, "test");
  auto ahead = make(12, &workers);
  ahead.set_request_bytes(4 * kSliceRoom);
  source_.move_container(0);
  ahead.plan(0, frames(0, 4, 1), 1);
  wait_for(workers);
  EXPECT_EQ(metrics_.requests.value(), 1U);
  for (std::uint32_t frame = 0; frame < 4; ++frame) {
    EXPECT_TRUE(ahead.take(*header_, slice(frame)).bytes().empty());
  }
  ahead.plan(1, frames(4, 6, 2), 2);  // The memory of the request is free again.
  wait_for(workers);
  EXPECT_EQ(metrics_.requests.value(), 2U);
}

TEST_F(AheadReadsTest, WhatIsUnderWayIsWaitedForAndMayEndTheReads) {
  base::ThreadPool workers(2, "test");
  std::mutex mutex;
  std::condition_variable changed;
  bool is_reading = false;
  bool may_go_on = false;
  source_.before_read = [&](std::uint32_t) {
    std::unique_lock lock(mutex);
    is_reading = true;
    changed.notify_all();
    changed.wait(lock, [&] { return may_go_on; });
  };
  auto ahead = std::make_unique<AheadReads>(&reader_, &source_, &buffers_, &workers,
                                            AheadReads::Sizes{1, kSliceRoom});
  ahead->plan(0, frames(0, 2, 1), 1);
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return is_reading; });
  }
  std::thread other([&] {
    const std::lock_guard lock(mutex);
    may_go_on = true;
    changed.notify_all();
  });
  EXPECT_EQ(ahead->take(*header_, slice(0)).bytes().size(), slice_bytes(*header_, slice(0)));
  other.join();
  ahead.reset();
  EXPECT_EQ(meter_.held(), 0U);
}

TEST_F(AheadReadsTest, OneRequestReadsSlicesOfSeveralAreas) {
  base::ThreadPool workers(1, "test");
  auto ahead = make(12, &workers);
  ahead.set_request_bytes(4 * kSliceRoom);
  auto planned = frames(1, 3, 1);
  for (const auto& one : frames(3, 6, 2)) planned.push_back(one);
  ahead.plan(0, planned, 1);
  ahead.plan(0, frames(0, 1, 3), 1);
  for (const std::uint32_t frame : {1U, 2U, 3U}) {
    expect_stored(ahead.take(*header_, slice(frame)).bytes(), frame);
    EXPECT_EQ(metrics_.requests.value(), 1U);
  }
  ahead.finish_area(1);
  expect_stored(ahead.take(*header_, slice(4)).bytes(), 4);
  EXPECT_EQ(metrics_.requests.value(), 1U);
  expect_stored(ahead.take(*header_, slice(5)).bytes(), 5);
  expect_stored(ahead.take(*header_, slice(0)).bytes(), 0);
  EXPECT_EQ(metrics_.requests.value(), 3U);
  EXPECT_TRUE(ahead.take(*header_, slice(1)).bytes().empty());
}

TEST_F(AheadReadsTest, SlicesAfterTheLastAreaBeginNoRequest) {
  base::ThreadPool workers(1, "test");
  auto ahead = make(12, &workers);
  ahead.set_request_bytes(4 * kSliceRoom);
  auto planned = frames(0, 1, 1);
  planned.push_back(frames(2, 3, 2).front());
  ahead.plan(0, planned, 1);
  wait_for(workers);
  EXPECT_EQ(metrics_.requests.value(), 1U);
  ahead.plan(1, frames(3, 4, 3), 2);  // Frames 2 and 3 are one request.
  wait_for(workers);
  EXPECT_EQ(metrics_.requests.value(), 2U);
  expect_stored(ahead.take(*header_, slice(3)).bytes(), 3);
  expect_stored(ahead.take(*header_, slice(2)).bytes(), 2);
  EXPECT_EQ(metrics_.requests.value(), 2U);
}

TEST_F(AheadReadsTest, WithoutWorkersThereIsNone) {
  auto ahead = make(2, nullptr);
  EXPECT_FALSE(ahead.is_usable());
  ahead.plan(0, frames(0, 1, 1), 1);
  ahead.finish_area(1);
  EXPECT_TRUE(ahead.take(*header_, slice(0)).bytes().empty());
  EXPECT_EQ(ahead.bytes(), 0U);
}

TEST_F(AheadReadsTest, ASealedContainerIsReadAsAWholeIfHalfOfItIsNeeded) {
  auto sealed = std::make_shared<format::ContainerHeader>(*header_);
  sealed->seal.emplace();
  sealed->seal->total_bytes = sealed->header_bytes + sealed->data_bytes;
  header_ = sealed;
  base::ThreadPool workers(1, "test");
  constexpr std::size_t kSlots = 16;
  {
    auto ahead = make(kSlots, &workers);
    ahead.set_request_bytes(kJoinedBytesMax);
    ahead.plan(0, frames(1, 5, 1), 1);
    for (std::uint32_t frame = 1; frame < 5; ++frame) {
      expect_stored(ahead.take(*header_, slice(frame)).bytes(), frame);
    }
  }
  EXPECT_EQ(metrics_.requests.value(), 1U);
  EXPECT_EQ(metrics_.read_bytes.value(), data_end(*sealed));
  // Less than half: in windows.
  auto ahead = make(kSlots, &workers);
  ahead.set_request_bytes(kJoinedBytesMax);
  ahead.plan(0, frames(1, 2, 1), 1);
  expect_stored(ahead.take(*header_, slice(1)).bytes(), 1);
  const auto in_windows = metrics_.read_bytes.value() - data_end(*sealed);
  EXPECT_LT(in_windows, data_end(*sealed));
  EXPECT_EQ(in_windows % SealedWindows::kWindowBytes, 0U);
}

}  // namespace
}  // namespace varve::restore
