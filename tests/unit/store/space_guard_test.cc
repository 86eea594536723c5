// SPDX-License-Identifier: Apache-2.0
#include "store/space_guard.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "io/memory_file_system.h"
#include "support/faulty_file_system.h"

namespace varve::store {
namespace {

constexpr std::uint64_t kMiB = 1U << 20;

class Holder final : public SpaceUser {
 public:
  [[nodiscard]] std::uint64_t unwritten_bytes() const override { return unwritten; }
  [[nodiscard]] std::uint64_t sealing_bytes() const override { return sealing; }
  void store_accepted() override {
    unwritten -= unwritten * duplicate_percent / 100;
    ++stores;
  }
  std::uint64_t unwritten = 0;
  std::uint64_t duplicate_percent = 0;
  int stores = 0;
  std::uint64_t sealing = 0;
};

// A disk of 160 MiB: its floor is 8 MiB and a container of 4 MiB.
class SpaceGuardTest : public testing::Test {
 protected:
  SpaceGuardTest() : files_(io::make_memory_file_system()) {
    EXPECT_TRUE(files_.make_directory("/r"));
    tell(100);
    guard_.emplace(files_, "/r");
  }
  void tell(std::uint64_t available_mib) {
    SpaceInfo space;
    space.block_bytes = kMiB;
    space.blocks = 160;
    space.blocks_available = space.blocks_free = available_mib;
    files_.told_space = space;
    if (guard_) guard_->scan_again();
  }
  bool admits(std::uint64_t mib) { return guard_->admit(mib * kMiB).has_value(); }

  test::FaultyFileSystem files_;
  std::optional<SpaceGuard> guard_;
};

TEST_F(SpaceGuardTest, AdmitsDownToTheFloor) {
  EXPECT_TRUE(admits(70));
  tell(13);
  EXPECT_FALSE(admits(2));
  const auto refused = guard_->admit(20 * kMiB);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kNoSpace);
  EXPECT_TRUE(guard_->is_tight());
  tell(100);
  EXPECT_TRUE(admits(2));
}

TEST_F(SpaceGuardTest, DoesNotAdmitTheSameSpaceTwice) {
  Holder holder;
  guard_->add(&holder);
  std::uint64_t admitted_mib = 0;
  while (admits(1)) {
    ++admitted_mib;
    holder.unwritten += kMiB;
    ASSERT_LT(admitted_mib, 100U);
  }
  EXPECT_LE(admitted_mib, 88U);
  EXPECT_GE(admitted_mib, 70U);
  guard_->remove(&holder);
  EXPECT_TRUE(admits(1));
}

TEST_F(SpaceGuardTest, DoesNotRefuseBecauseOfDuplicatesOnTheirWay) {
  Holder holder;
  guard_->add(&holder);
  holder.unwritten = 40 * kMiB;
  tell(50);
  EXPECT_FALSE(admits(2));
  EXPECT_EQ(holder.stores, 1);
  holder.duplicate_percent = 100;
  EXPECT_TRUE(admits(2));
  EXPECT_EQ(holder.stores, 2);
  tell(13);
  EXPECT_FALSE(admits(2));
  EXPECT_EQ(holder.stores, 2) << "nothing was on its way";
}

TEST_F(SpaceGuardTest, MakesRoomBeforeItRefuses) {
  std::uint64_t removable = 50;
  int calls = 0;
  guard_->make_room_by([&](std::uint64_t bytes) {
    EXPECT_EQ(bytes, 2 * kMiB);
    ++calls;
    tell(13 + removable);
    return std::exchange(removable, 0) != 0;
  });
  tell(13);
  EXPECT_TRUE(admits(2));
  EXPECT_EQ(calls, 1);
  tell(13);
  EXPECT_FALSE(admits(2)) << "nothing is left to remove";
  EXPECT_EQ(calls, 2);
}

TEST_F(SpaceGuardTest, RoomForLaterWritesMayBeMadeMeanwhile) {
  tell(50);
  EXPECT_FALSE(guard_->has_room(1000 * kMiB));
  guard_->make_room_by([](std::uint64_t) { return false; });
  EXPECT_TRUE(guard_->has_room(1000 * kMiB));
  EXPECT_TRUE(admits(30)) << "nothing was set aside";
  tell(12);
  EXPECT_FALSE(guard_->has_room(1000 * kMiB));
}

TEST_F(SpaceGuardTest, KeepsWhatSealingTakes) {
  Holder holder;
  holder.sealing = 60 * kMiB;
  guard_->add(&holder);
  EXPECT_FALSE(admits(40));
  EXPECT_TRUE(admits(20));
}

TEST_F(SpaceGuardTest, AdmitsWhereTheDiskDoesNotTell) {
  files_.told_space = SpaceInfo{};
  EXPECT_TRUE(admits(1000));
}

TEST_F(SpaceGuardTest, ReserveIsGivenUpOnceAndMadeAgainOfASixthOfTheRoom) {
  EXPECT_FALSE(guard_->give_up_reserve());
  guard_->keep_reserve();
  EXPECT_EQ(*files_.tree_bytes("/r/reserve"), 8 * kMiB);
  EXPECT_TRUE(guard_->give_up_reserve());
  EXPECT_FALSE(guard_->give_up_reserve());
  tell(2);
  guard_->keep_reserve();
  EXPECT_FALSE(*files_.exists("/r/reserve"));
  tell(36);
  guard_->keep_reserve();
  EXPECT_EQ(*files_.tree_bytes("/r/reserve"), 6 * kMiB);
  tell(12);
  guard_->keep_reserve();
  EXPECT_EQ(*files_.tree_bytes("/r/reserve"), 6 * kMiB);
  Holder holder;
  holder.sealing = 5 * kMiB;
  guard_->add(&holder);
  tell(100);
  guard_->keep_reserve();
  EXPECT_EQ(*files_.tree_bytes("/r/reserve"), 12 * kMiB);
}

TEST_F(SpaceGuardTest, AfterItsUseTheReserveIsMadeOfHalfOfWhatIsLeft) {
  tell(100);
  guard_->keep_reserve();
  tell(0);
  EXPECT_TRUE(guard_->give_up_reserve());
  tell(2);
  guard_->keep_reserve();
  EXPECT_FALSE(*files_.exists("/r/reserve"));
  tell(6);
  guard_->renew_reserve();
  EXPECT_EQ(*files_.tree_bytes("/r/reserve"), 3 * kMiB);
  tell(100);
  guard_->renew_reserve();  // There is one.
  EXPECT_EQ(*files_.tree_bytes("/r/reserve"), 3 * kMiB);
  guard_->keep_reserve();
  EXPECT_EQ(*files_.tree_bytes("/r/reserve"), 8 * kMiB);
  EXPECT_TRUE(guard_->give_up_reserve());
  tell(0);
  guard_->renew_reserve();
  EXPECT_FALSE(guard_->give_up_reserve());
}

// A file system that compresses, or stores equal blocks once, would keep no space for them.
TEST_F(SpaceGuardTest, ReserveHasNoEqualBlocksAndDoesNotCompress) {
  guard_->keep_reserve();
  const auto bytes = files_.read_file("/r/reserve", 16 * kMiB);
  ASSERT_TRUE(bytes.has_value());
  ASSERT_EQ(bytes->size(), 8 * kMiB);
  std::set<std::string> words;
  for (std::size_t at = 0; at < bytes->size(); at += 4096) words.insert(bytes->substr(at, 8));
  EXPECT_EQ(words.size(), bytes->size() / 4096);
  std::array<std::size_t, 256> counts{};
  for (const char c : *bytes) ++counts[static_cast<unsigned char>(c)];
  for (const auto count : counts) EXPECT_LT(count, bytes->size() / 200);
}

}  // namespace
}  // namespace varve::store
