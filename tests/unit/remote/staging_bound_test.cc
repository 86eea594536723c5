// SPDX-License-Identifier: Apache-2.0
#include "remote/staging_bound.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/interruption.h"
#include "support/temp_repository.h"

namespace varve::remote {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using test::code_of;
using test::must;

constexpr std::uint64_t kBound = 1'000'000;

/// A folder with data that waits for a store.
class Folder {
 public:
  explicit Folder(milliseconds patience)
      : bound({.place = "s3://b/p",
               .bytes_max = kBound,
               .patience = patience,
               .staged =
                   [this] {
                     ++looks;
                     return Result<std::uint64_t>(staged.load());
                   },
               .disk_room = [this](std::uint64_t) { return std::optional(disk_room.load()); },
               .notify =
                   [this] {
                     ++notified;
                     if (on_notify) on_notify();
                   },
               .is_fenced = [this] { return fenced.load(); }}) {}

  void wait_for_writers(std::size_t count) {
    while (bound.waiting() < count) std::this_thread::yield();
  }

  std::atomic<std::uint64_t> staged = 0;
  std::atomic<std::uint64_t> disk_room = 1000 * kBound;
  std::atomic<int> looks = 0;
  std::atomic<int> notified = 0;
  std::atomic<bool> fenced = false;
  std::function<void()> on_notify;  // Called by the writer, before it waits.
  StagingBound bound;
};

TEST(StagingBound, WritesBelowTheBoundDoNotWait) {
  Folder folder(hours(1));
  for (int i = 0; i < 1000; ++i) must(folder.bound.before_write(4096));
  EXPECT_EQ(folder.notified, 0);
  // A look at the folder lists it, so it is rare.
  EXPECT_LT(folder.looks, 100);
}

TEST(StagingBound, AWriterWaitsUntilTheStoreHasTheData) {
  Folder folder(hours(1));
  folder.staged = kBound + 1;
  std::atomic<bool> done = false;
  std::thread writer([&] {
    must(folder.bound.before_write(10));
    done = true;
  });
  folder.wait_for_writers(1);
  EXPECT_FALSE(done);
  EXPECT_GT(folder.notified, 0);
  folder.staged = 0;
  folder.bound.replicated();
  writer.join();
  EXPECT_TRUE(done);
}

// Data that no commit names yet cannot be uploaded, so waiting for it would never end.
TEST(StagingBound, AfterAReplicationAWriterGoesOnByAStep) {
  Folder folder(hours(1));
  folder.staged = 2 * kBound;
  std::thread writer([&] { must(folder.bound.before_write(10)); });
  folder.wait_for_writers(1);
  folder.bound.replicated();
  writer.join();
  must(folder.bound.before_write(1000));
  std::thread later([&] { must(folder.bound.before_write(kBound)); });
  folder.wait_for_writers(1);
  folder.bound.replicated();
  later.join();
}

TEST(StagingBound, AReplicationThatEndsBeforeTheWaitCounts) {
  Folder folder(milliseconds(10));
  folder.staged = 2 * kBound;
  folder.on_notify = [&] { folder.bound.replicated(); };
  must(folder.bound.before_write(10));
}

// Data that the store has can be removed from the disk.
TEST(StagingBound, AWriterWaitsWhileTheDiskIsNearlyFull) {
  Folder folder(hours(1));
  folder.staged = 10;
  folder.disk_room = 0;
  std::thread writer([&] { must(folder.bound.before_write(kBound)); });
  folder.wait_for_writers(1);
  folder.staged = 0;
  folder.disk_room = 1000 * kBound;
  folder.bound.replicated();
  writer.join();
  must(folder.bound.before_write(1));
}

TEST(StagingBound, AWriterThatLosesItsPatienceNamesTheDisk) {
  Folder folder(milliseconds(10));
  folder.staged = 10;
  folder.disk_room = 0;
  const auto refused = folder.bound.before_write(kBound);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(),
            "the disk is nearly full, and s3://b/p must answer before data is removed from it; it "
            "takes nothing, and nothing more is accepted until it answers");
}

TEST(StagingBound, AWriterLosesItsPatienceAndOthersDoNotWaitAgain) {
  Folder folder(milliseconds(10));
  folder.staged = kBound + 1;
  EXPECT_EQ(code_of(folder.bound.before_write(10)), ErrorCode::kNoSpace);
  EXPECT_EQ(code_of(folder.bound.before_write(10)), ErrorCode::kNoSpace);
  folder.bound.before_seal();  // Its data is here already.
  folder.staged = 0;
  folder.bound.replicated();
  must(folder.bound.before_write(10));
}

TEST(StagingBound, AnInterruptedRequestEnds) {
  Folder folder(hours(1));
  folder.staged = kBound + 1;
  std::atomic<bool> interrupted = false;
  std::thread writer([&] {
    const base::InterruptionScope scope(
        [](void* flag) { return static_cast<std::atomic<bool>*>(flag)->load(); }, &interrupted);
    EXPECT_EQ(code_of(folder.bound.before_write(10)), ErrorCode::kInterrupted);
  });
  folder.wait_for_writers(1);
  interrupted = true;
  writer.join();
}

TEST(StagingBound, TooManyWritersAreRefused) {
  Folder folder(hours(1));
  folder.staged = kBound + 1;
  std::vector<std::thread> writers;
  for (std::size_t i = 0; i < StagingBound::kWaitingMax; ++i) {
    writers.emplace_back([&] { must(folder.bound.before_write(10)); });
  }
  folder.wait_for_writers(StagingBound::kWaitingMax);
  EXPECT_EQ(code_of(folder.bound.before_write(10)), ErrorCode::kNoSpace);
  folder.bound.stop();
  for (auto& writer : writers) writer.join();
}

// Nothing of a fenced folder will ever be replicated.
TEST(StagingBound, AFencedFolderDoesNotWait) {
  Folder folder(hours(1));
  folder.staged = kBound + 1;
  folder.fenced = true;
  must(folder.bound.before_write(10));
  folder.bound.before_seal();
}

}  // namespace
}  // namespace varve::remote
