// SPDX-License-Identifier: Apache-2.0
// Tests that a reader of cells lends bytes from the memory of its requests.
#include <gtest/gtest.h>

#include <cstdint>

#include "cell_reader_fixture.h"

namespace varve::remote {
namespace {

TEST_F(CellReaderTest, BytesOfOneRequestAreLent) {
  reader_->will_read_once();
  const auto lent = lend(100'000, 2 * kMiB);
  ASSERT_NE(lent.holder, nullptr);
  const auto again = lend(kMiB, 1000);
  EXPECT_EQ(again.bytes.data(), lent.bytes.data() + (kMiB - 100'000)) << "the same memory";
  // Requests after it, of which none uses that memory.
  for (std::uint64_t at = 4 * kMiB; at < 10 * kMiB; at += kMiB) EXPECT_FALSE(read(at, kMiB));
  reader_.reset();
  expect_content(100'000, lent.bytes);
  expect_content(kMiB, again.bytes);
}

TEST_F(CellReaderTest, BytesOfTwoRequestsAreCopied) {
  reader_->will_read_once();
  const auto first = lend(0, kMiB);
  EXPECT_NE(first.holder, nullptr);
  EXPECT_EQ(lend(kMiB / 2, 2 * kMiB).holder, nullptr);
}

TEST_F(CellReaderTest, NothingIsLentToReadersThatMayHoldItForLong) {
  EXPECT_EQ(lend(0, kMiB).holder, nullptr);
}

TEST_F(CellReaderTest, LentBytesStayInMemoryUntilTheyAreReleased) {
  limits_.held_bytes_max = 0;
  limits_.unread_kept = std::chrono::milliseconds(0);
  restart();
  reader_->will_read_once();
  auto lent = lend(0, kMiB);
  for (std::uint64_t at = 5 * kMiB; at < 10 * kMiB; at += kMiB) {
    EXPECT_FALSE(read(at, kMiB));
    expect_content(0, lent.bytes);
  }
  EXPECT_NE(lend(kCacheCellBytes, 10).holder, nullptr);
  EXPECT_EQ(received(), 6 * kMiB) << "what is lent stays in memory";
  lent = {};
  EXPECT_FALSE(read(4 * kMiB, kMiB));
  EXPECT_FALSE(read(0, 10));
  EXPECT_EQ(received(), 7 * kMiB + kCacheCellBytes);
}

TEST_F(CellReaderTest, AboveTheLimitBytesAreCopied) {
  limits_.lent_bytes_max = 2 * kMiB;
  restart();
  reader_->will_read_once();
  const auto first = lend(0, kMiB);
  const auto second = lend(kMiB, kMiB);
  EXPECT_NE(first.holder, nullptr);
  EXPECT_NE(second.holder, nullptr);
  EXPECT_EQ(lend(2 * kMiB, kMiB).holder, nullptr);
  EXPECT_NE(lend(kMiB, 10).holder, nullptr) << "of a request that is held anyway";
}

}  // namespace
}  // namespace varve::remote
