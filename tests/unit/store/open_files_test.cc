// SPDX-License-Identifier: Apache-2.0
#include "store/open_files.h"

#include <gtest/gtest.h>

#include <memory>

#include "support/memory_segment_store.h"

namespace varve::store {
namespace {

class OpenFilesTest : public testing::Test {
 protected:
  OpenFilesTest() {
    for (std::uint32_t i = 1; i <= 3; ++i) {
      EXPECT_TRUE(one_.create(SegmentNumber{i}));
      EXPECT_TRUE(other_.create(SegmentNumber{i}));
    }
  }
  /// Returns whether the file is kept.
  bool has(const SegmentStore& store, std::uint32_t segment) {
    return files_.find({&store, SegmentNumber{segment}, ReadMode::kPlanned}, state_) != nullptr;
  }
  void add(SegmentStore& store, std::uint32_t segment) {
    const OpenFiles::Key key{&store, SegmentNumber{segment}, ReadMode::kPlanned};
    EXPECT_EQ(files_.find(key, state_), nullptr);
    auto file = store.open(SegmentNumber{segment}, ReadMode::kPlanned);
    ASSERT_TRUE(file);
    EXPECT_NE(files_.add(key, state_, *file), nullptr);
  }

  test::MemorySegmentStore one_;
  test::MemorySegmentStore other_;
  OpenFiles files_{2};
  std::uint64_t state_ = 0;
};

TEST_F(OpenFilesTest, TheFilesUsedLastStayOpenInAllStoresTogether) {
  add(one_, 1);
  add(other_, 1);
  EXPECT_TRUE(has(one_, 1));
  add(other_, 2);
  EXPECT_FALSE(has(other_, 1));
  EXPECT_TRUE(has(one_, 1));
  EXPECT_TRUE(has(other_, 2));
}

TEST_F(OpenFilesTest, AForgottenFileIsClosedAlsoIfItWasBeingOpened) {
  add(one_, 1);
  const OpenFiles::Key key{&one_, SegmentNumber{2}, ReadMode::kPlanned};
  ASSERT_EQ(files_.find(key, state_), nullptr);
  const auto state = state_;
  const std::weak_ptr<OpenSegment> opened = [&] {
    auto file = *one_.open(SegmentNumber{2}, ReadMode::kPlanned);
    files_.forget(one_, SegmentNumber{2});
    return files_.add(key, state, file);
  }();
  EXPECT_TRUE(opened.expired());
  EXPECT_FALSE(has(one_, 2));
  files_.forget(one_, SegmentNumber{1});
  EXPECT_FALSE(has(one_, 1));
}

TEST_F(OpenFilesTest, ForgettingAStoreKeepsTheOthers) {
  add(one_, 1);
  add(other_, 1);
  files_.forget(one_);
  EXPECT_FALSE(has(one_, 1));
  EXPECT_TRUE(has(other_, 1));
}

TEST_F(OpenFilesTest, TwoThatOpenAFileAtOnceShareOne) {
  const OpenFiles::Key key{&one_, SegmentNumber{1}, ReadMode::kDirect};
  std::uint64_t state = 0;
  ASSERT_EQ(files_.find(key, state), nullptr);
  const auto first = files_.add(key, state, *one_.open(SegmentNumber{1}, ReadMode::kDirect));
  EXPECT_EQ(files_.add(key, state, *one_.open(SegmentNumber{1}, ReadMode::kDirect)), first);
}

}  // namespace
}  // namespace varve::store
