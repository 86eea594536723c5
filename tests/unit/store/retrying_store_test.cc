// SPDX-License-Identifier: Apache-2.0
#include "store/retrying_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "support/memory_segment_store.h"

namespace varve::store {
namespace {

using std::chrono::milliseconds;

constexpr SegmentNumber kSegment{3};
constexpr GroupNumber kGroup{4};

Error unavailable() { return {ErrorCode::kUnavailable, "the store does not answer"}; }

/// Fails the next calls with an error, some of them after they took effect.
struct Failures {
  std::atomic<int> left{0};
  std::atomic<int> calls{0};
  Error error = unavailable();
  bool takes_effect = false;

  // Counts a call. Returns true if it must fail.
  bool next() {
    ++calls;
    return left.fetch_sub(1) > 0;
  }
  template <typename Work>
  auto run(const Work& work) -> decltype(work()) {
    if (!next()) return work();
    if (takes_effect) static_cast<void>(work());
    return error;
  }
};

class FlakyAppender final : public SegmentAppender {
 public:
  FlakyAppender(std::unique_ptr<SegmentAppender> writer, Failures& failures)
      : writer_(std::move(writer)), failures_(failures) {}
  Result<void> append(std::span<const std::span<const std::byte>> parts) override {
    return failures_.run([&] { return writer_->append(parts); });
  }

 private:
  const std::unique_ptr<SegmentAppender> writer_;
  Failures& failures_;
};

/// A memory store whose calls fail. Reads fail by MemorySegmentStore::fail_reads().
class FlakyStore final : public SegmentStore {
 public:
  explicit FlakyStore(Failures& failures) : failures_(failures) {}
  Result<void> prepare() override {
    return failures_.run([&] { return memory.prepare(); });
  }
  Result<std::shared_ptr<OpenSegment>> open(StoredFile file, ReadMode mode) override {
    return failures_.run([&] { return memory.open(file, mode); });
  }
  void read_many(std::vector<RangeRead> ranges, ReadCompletion done) override {
    memory.read_many(std::move(ranges), std::move(done));
  }
  bool answers_later() const override { return true; }
  Result<std::unique_ptr<SegmentAppender>> create(SegmentNumber segment) override {
    auto writer = failures_.run([&] { return memory.create(segment); });
    if (!writer) return writer;
    return std::unique_ptr<SegmentAppender>(
        std::make_unique<FlakyAppender>(std::move(*writer), failures_));
  }
  Result<void> sync(StoredFile file) override {
    return failures_.run([&] { return memory.sync(file); });
  }
  Result<void> sync_names(StoredKind kind) override {
    return failures_.run([&] { return memory.sync_names(kind); });
  }
  Result<void> write_again(SegmentNumber segment, std::uint64_t offset,
                           std::span<const std::byte> bytes) override {
    return failures_.run([&] { return memory.write_again(segment, offset, bytes); });
  }
  Result<void> put(StoredFile file, std::span<const std::span<const std::byte>> parts) override {
    return failures_.run([&] { return memory.put(file, parts); });
  }
  Result<void> correct(StoredFile file, const std::vector<Correction>& corrections) override {
    return failures_.run([&] { return memory.correct(file, corrections); });
  }
  Result<void> cut(StoredFile file, std::uint64_t bytes) override {
    return failures_.run([&] { return memory.cut(file, bytes); });
  }
  Result<void> remove(StoredFile file) override {
    return failures_.run([&] { return memory.remove(file); });
  }
  Result<void> remove_unfinished(StoredKind kind) override {
    return failures_.run([&] { return memory.remove_unfinished(kind); });
  }
  Result<std::vector<StoredFile>> list(StoredKind kind) override {
    return failures_.run([&] { return memory.list(kind); });
  }
  Result<std::uint64_t> size(StoredFile file) override {
    return failures_.run([&] { return memory.size(file); });
  }
  Result<SpaceInfo> space() override {
    return failures_.run([&] { return memory.space(); });
  }
  std::string describe() const override { return memory.describe(); }
  std::string describe(StoredFile file) const override { return memory.describe(file); }

  test::MemorySegmentStore memory;

 private:
  Failures& failures_;
};

class RetryingStoreTest : public testing::Test {
 protected:
  RetryingStoreTest() {
    RetryPolicy policy;
    policy.attempts_max = 4;
    policy.wait_first = milliseconds(10);
    policy.wait_max = milliseconds(25);
    policy.sleep = [this](milliseconds time) {
      const std::lock_guard lock(mutex_);
      waits_.push_back(time);
    };
    auto flaky = std::make_unique<FlakyStore>(failures_);
    memory_ = &flaky->memory;
    store_ = std::make_unique<RetryingStore>(std::move(flaky), std::move(policy));
    const std::array<std::span<const std::byte>, 1> parts{content_};
    EXPECT_TRUE(store_->put(kGroup, parts));
    failures_.calls = 0;
  }
  std::vector<milliseconds> waits() {
    const std::lock_guard lock(mutex_);
    return waits_;
  }
  // Reads each byte of the file as a range of its own.
  std::vector<Result<std::size_t>> read_bytes(std::vector<std::byte>& out) {
    const auto file = *store_->open(kGroup, ReadMode::kDirect);
    out.assign(content_.size(), std::byte{});
    std::vector<RangeRead> ranges;
    for (std::size_t i = 0; i < out.size(); ++i) {
      ranges.push_back({file, i, std::span(out).subspan(i, 1)});
    }
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<Result<std::size_t>> got(out.size(), Result<std::size_t>(std::size_t{99}));
    std::size_t completed = 0;
    store_->read_many(ranges, [&](std::size_t position, Result<std::size_t> bytes) {
      const std::lock_guard lock(mutex);
      got[position] = std::move(bytes);
      ++completed;
      changed.notify_all();
    });
    std::unique_lock lock(mutex);
    EXPECT_TRUE(
        changed.wait_for(lock, std::chrono::seconds(20), [&] { return completed == out.size(); }));
    return got;
  }

  Failures failures_;
  std::mutex mutex_;
  std::vector<milliseconds> waits_;
  const std::vector<std::byte> content_ = std::vector<std::byte>(20, std::byte{7});
  std::unique_ptr<RetryingStore> store_;
  test::MemorySegmentStore* memory_ = nullptr;
};

TEST_F(RetryingStoreTest, WaitsLongerBeforeEachAttempt) {
  failures_.left = 3;
  EXPECT_EQ(*store_->size(kGroup), content_.size());
  EXPECT_EQ(waits(), (std::vector{milliseconds(10), milliseconds(20), milliseconds(25)}));
  EXPECT_EQ(failures_.calls, 4);
}

TEST_F(RetryingStoreTest, GivesUpAfterTheLastAttempt) {
  failures_.left = 100;
  EXPECT_EQ(store_->list(StoredKind::kGroups).error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(failures_.calls, 4);
}

TEST_F(RetryingStoreTest, OtherErrorsAreReturnedAtOnce) {
  failures_.error = Error(ErrorCode::kIo, "the disk fails").with_errno(EIO);
  failures_.left = 1;
  EXPECT_EQ(store_->size(kGroup).error().code(), ErrorCode::kIo);
  EXPECT_EQ(store_->open(kSegment, ReadMode::kCached).error().code(), ErrorCode::kNotFound);
  EXPECT_TRUE(waits().empty());
}

TEST_F(RetryingStoreTest, ASyncIsNotRepeated) {
  failures_.left = 1;
  EXPECT_EQ(store_->sync(kGroup).error().code(), ErrorCode::kUnavailable);
  failures_.left = 1;
  EXPECT_EQ(store_->sync_names(StoredKind::kGroups).error().code(), ErrorCode::kUnavailable);
  EXPECT_TRUE(waits().empty());
}

TEST_F(RetryingStoreTest, AnAppendThatWroteNothingIsRepeated) {
  auto writer = store_->create(kSegment);
  ASSERT_TRUE(writer);
  failures_.left = 2;
  const std::array<std::span<const std::byte>, 1> parts{content_};
  ASSERT_TRUE((*writer)->append(parts));
  EXPECT_EQ(*store_->size(kSegment), content_.size());
}

TEST_F(RetryingStoreTest, AFileThatTheFirstAttemptRemovedIsRemoved) {
  failures_.takes_effect = true;
  failures_.left = 1;
  EXPECT_TRUE(store_->remove(kGroup));
  EXPECT_EQ(store_->remove(kGroup).error().code(), ErrorCode::kNotFound);
}

TEST_F(RetryingStoreTest, AReadIsRepeated) {
  const auto file = *store_->open(kGroup, ReadMode::kCached);
  memory_->fail_reads(2);
  std::vector<std::byte> out(20);
  EXPECT_EQ(*file->read_at(0, out), out.size());
  EXPECT_EQ(out, content_);
  EXPECT_EQ(waits().size(), 2U);
}

TEST_F(RetryingStoreTest, OnlyTheFailedRangesOfABatchAreRepeated) {
  memory_->fail_reads(25);  // All 20 ranges, then 5 of them once more.
  std::vector<std::byte> out;
  for (const auto& got : read_bytes(out)) EXPECT_EQ(*got, 1U);
  EXPECT_EQ(out, content_);
  EXPECT_EQ(waits(), (std::vector{milliseconds(10), milliseconds(20)}));
}

TEST_F(RetryingStoreTest, ABatchGivesUpAfterTheLastAttempt) {
  memory_->fail_reads(1000);
  std::vector<std::byte> out;
  for (const auto& got : read_bytes(out)) {
    EXPECT_EQ(got.error().code(), ErrorCode::kUnavailable);
  }
  EXPECT_EQ(waits().size(), 3U);
}

TEST(WithRetries, AStoreThatAlwaysAnswersIsNotWrapped) {
  auto store = std::make_unique<test::MemorySegmentStore>();  // Without latency.
  const auto* was = store.get();
  EXPECT_EQ(with_retries(std::move(store), {}).get(), was);
  auto distant = std::make_unique<test::MemorySegmentStore>(milliseconds(1));
  const auto* inner = distant.get();
  EXPECT_NE(with_retries(std::move(distant), {}).get(), inner);
}

}  // namespace
}  // namespace varve::store
