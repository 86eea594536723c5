// SPDX-License-Identifier: Apache-2.0
#include "control/lock_wait.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "control/lock_holder.h"
#include "support/temp_repository.h"

namespace varve::control {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kHolder = "process 42 (varve store /r a/1 /home)";

/// A scene without a real clock: a pause only moves the time on.
struct Scene {
  LockHolder holder = LockHolder::kPassing;
  std::string process = kHolder;
  int questions = 0;
  std::chrono::steady_clock::time_point time{};
  std::vector<milliseconds> pauses{};
  std::vector<std::string> lines{};
  bool is_stopped = false;

  LockScene parts() {
    return {.holder =
                [this] {
                  ++questions;
                  return holder;
                },
            .process = [this] { return process; },
            .now = [this] { return time; },
            .pause =
                [this](milliseconds pause) {
                  pauses.push_back(pause);
                  time += pause;
                  return !is_stopped;
                },
            .tell = [this](const std::string& line) { lines.push_back(line); }};
  }
};

/// Waits until the wait is over.
void wait_out(Scene& scene, const LockWait& wait) {
  LockWaiting waiting("/r", wait, scene.parts());
  for (int tries = 0; tries < 10'000; ++tries) {
    const auto again = waiting.goes_on();
    ASSERT_TRUE(again);
    if (!*again) return;
  }
  FAIL() << "the wait does not end";
}

TEST(LockWaiting, LastsAsLongAsAskedInGrowingPauses) {
  Scene scene;
  const auto start = scene.time;
  wait_out(scene, {.most = seconds(600)});
  EXPECT_EQ(scene.time - start, seconds(600));
  ASSERT_GT(scene.pauses.size(), 600U);
  EXPECT_LE(scene.pauses.front(), milliseconds(50));
  EXPECT_TRUE(std::is_sorted(scene.pauses.begin(), scene.pauses.end() - 1));
  EXPECT_EQ(*std::ranges::max_element(scene.pauses), milliseconds(1000));
}

TEST(LockWaiting, ZeroDoesNotPause) {
  Scene scene;
  wait_out(scene, {.most = seconds(0), .for_mounts = true});
  EXPECT_TRUE(scene.pauses.empty());
}

TEST(LockWaiting, LongWaitIsAnnouncedOnceWithItsHolderAndLimit) {
  Scene scene;
  LockWaiting waiting("/r", {.most = seconds(600)}, scene.parts());
  while (scene.time.time_since_epoch() < seconds(5)) {
    EXPECT_TRUE(scene.lines.empty());
    ASSERT_TRUE(waiting.goes_on());
  }
  for (int more = 0; more < 100; ++more) ASSERT_TRUE(waiting.goes_on());
  ASSERT_EQ(scene.lines.size(), 1U);
  EXPECT_NE(scene.lines[0].find(kHolder), std::string::npos) << scene.lines[0];
  EXPECT_NE(scene.lines[0].find("10 min"), std::string::npos) << scene.lines[0];
}

TEST(LockWaiting, ShortWaitIsNotAnnounced) {
  Scene scene;
  wait_out(scene, {.most = seconds(5)});
  EXPECT_TRUE(scene.lines.empty());
}

TEST(LockWaiting, InvisibleHolderIsCalledSo) {
  Scene scene;
  scene.process.clear();
  wait_out(scene, {});
  ASSERT_EQ(scene.lines.size(), 1U);
  EXPECT_NE(scene.lines[0].find("not visible here"), std::string::npos) << scene.lines[0];
}

TEST(LockWaiting, DaemonThatServesEndsTheWait) {
  for (const LockHolder holder : {LockHolder::kServing, LockHolder::kFence}) {
    Scene scene;
    scene.holder = holder;
    wait_out(scene, {.most = seconds(600), .for_mounts = true});
    EXPECT_TRUE(scene.pauses.empty());
  }
}

TEST(LockWaiting, MountThatRefusesIsWaitedForOnlyOnDemand) {
  Scene scene;
  scene.holder = LockHolder::kRefusing;
  wait_out(scene, {.most = seconds(600)});
  EXPECT_TRUE(scene.pauses.empty());
  wait_out(scene, {.most = seconds(600), .for_mounts = true});
  EXPECT_EQ(scene.time.time_since_epoch(), seconds(600));
  ASSERT_EQ(scene.lines.size(), 1U);
  EXPECT_NE(scene.lines[0].find("varve umount"), std::string::npos) << scene.lines[0];
  EXPECT_LT(scene.questions, 25) << "a daemon logs each connection that it refuses";
}

TEST(LockWaiting, StopIsInterrupted) {
  Scene scene;
  scene.is_stopped = true;
  LockWaiting waiting("/r", {}, scene.parts());
  const auto again = waiting.goes_on();
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code(), ErrorCode::kInterrupted);
}

TEST(LockWaiting, FactsAreReadAgainBeforeEachAttempt) {
  const test::TempDirectory folder;
  int prepared = 0;
  int attempts = 0;
  LockWait wait;
  wait.prepare = [&]() -> Result<void> {
    ++prepared;
    return {};
  };
  const auto opened = open_when_unlocked(folder.path(), wait, [&]() -> Result<int> {
    if (++attempts < 3) return Error(ErrorCode::kLocked, "locked");
    return prepared;
  });
  ASSERT_TRUE(opened);
  EXPECT_EQ(*opened, 3);
}

TEST(LockWaiting, FactsThatCannotBeReadAreTheError) {
  const test::TempDirectory folder;
  LockWait wait{.most = seconds(0)};
  wait.prepare = []() -> Result<void> { return Error(ErrorCode::kLocked, "facts"); };
  const auto opened = open_when_unlocked(folder.path(), wait, []() -> Result<int> { return 1; });
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().message(), "facts");
}

TEST(ListedLocks, HasOnlyHoldersOfExclusiveLocksOfFlock) {
  const auto locks = parse_locks(
      "1: POSIX  ADVISORY  WRITE 11 08:01:1 0 EOF\n"
      "2: FLOCK  ADVISORY  WRITE 12 fd:0a:131104 0 EOF\n"
      "2: -> FLOCK  ADVISORY  WRITE 13 fd:0a:131104 0 EOF\n"
      "3: FLOCK  ADVISORY  READ 14 08:01:2 0 EOF\n"
      "4: FLOCK  ADVISORY  WRITE 0 08:01:3 0 EOF\n"
      "5: FLOCK  ADVI");
  const std::vector<ListedLock> expected{{12, 0xfd, 0x0a, 131104}};
  EXPECT_EQ(locks, expected);
}

TEST(HolderOfLock, NamesTheProcessAndItsCommand) {
  const test::TempDirectory folder;
  const std::string path = folder.path() + "/lock";
  std::ofstream(path) << "";
  EXPECT_EQ(holder_of_lock(path), "");
  const base::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::flock(file.get(), LOCK_EX), 0);
  const std::string holder = holder_of_lock(path);
  EXPECT_TRUE(holder.starts_with("process " + std::to_string(::getpid()) + " (")) << holder;
  EXPECT_EQ(holder_of_lock(folder.path() + "/none"), "");
}

}  // namespace
}  // namespace varve::control
