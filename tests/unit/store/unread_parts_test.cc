// SPDX-License-Identifier: Apache-2.0
// Reading around places of a file that cannot be read.
#include "store/unread_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <vector>

#include "base/system_error.h"

namespace varve::store {
namespace {

constexpr std::size_t kFileBytes = 40'000;
constexpr std::size_t kPiece = 4096;

Error end_error() { return {ErrorCode::kCorrupt, "the file ends"}; }
Error device_error() { return base::system_error("read", EIO); }

/// A file in memory with a range that fails.
class BadFile final : public OpenSegment {
 public:
  BadFile() : bytes(kFileBytes) {
    std::mt19937 random(1);
    for (auto& b : bytes) b = static_cast<std::byte>(random());
  }
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) override {
    if (offset < bad_end && offset + out.size() > bad_begin) return error;
    if (offset >= bytes.size()) return std::size_t{0};
    const auto n = std::min<std::size_t>(out.size(), bytes.size() - offset);
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), n, out.begin());
    return n;
  }
  Result<std::uint64_t> size() override { return bytes.size(); }

  std::vector<std::byte> bytes;
  std::size_t bad_begin = 0;
  std::size_t bad_end = 0;
  Error error = device_error();
};

class ReadAround : public testing::Test {
 protected:
  /// Reads `out_` from `offset`, and expects that exactly the bytes of the file from `begin` to
  /// `end` are missing.
  void expect_missing(std::uint64_t offset, std::size_t begin, std::size_t end) {
    const auto unread = read_around(file_, offset, out_, kPiece, end_error);
    ASSERT_TRUE(unread) << unread.error().message();
    for (std::size_t i = 0; i < out_.size(); ++i) {
      const bool is_missing = offset + i >= begin && offset + i < end;
      ASSERT_EQ(unread->find(i, i + 1) != nullptr, is_missing) << offset + i;
      if (is_missing) continue;
      ASSERT_EQ(out_[i], file_.bytes[offset + i]) << offset + i;
    }
  }

  BadFile file_;
  std::vector<std::byte> out_ = std::vector<std::byte>(20'000);
};

TEST_F(ReadAround, WholeRangeHasNoUnreadParts) {
  const auto unread = read_around(file_, 100, out_, kPiece, end_error);
  ASSERT_TRUE(unread);
  EXPECT_TRUE(unread->empty());
}

TEST_F(ReadAround, CutFileGivesEachByteBeforeItsEnd) {
  for (const std::size_t cut : {1U, 100U, 4095U, 4096U, 19'999U, 20'000U}) {
    file_.bytes.resize(kFileBytes - cut);
    expect_missing(kFileBytes - out_.size(), kFileBytes - cut, kFileBytes);
  }
}

TEST_F(ReadAround, UnreadableSectorCostsItsPieceAlone) {
  file_.bad_begin = 3 * kPiece;
  file_.bad_end = 4 * kPiece;
  expect_missing(1234, 3 * kPiece, 4 * kPiece);
  expect_missing(3 * kPiece + 5, 3 * kPiece, 4 * kPiece);
}

TEST_F(ReadAround, UnreadableSectorInACutFileCostsBoth) {
  file_.bytes.resize(7 * kPiece + 10);
  file_.bad_begin = 5 * kPiece + 7;
  file_.bad_end = 5 * kPiece + 8;
  const std::uint64_t offset = 4 * kPiece;
  const auto unread = read_around(file_, offset, out_, kPiece, end_error);
  ASSERT_TRUE(unread);
  EXPECT_EQ(unread->find(0, kPiece), nullptr);
  ASSERT_NE(unread->find(0, kPiece + 1), nullptr);
  EXPECT_TRUE(base::is_device_failure(*unread->find(kPiece, kPiece + 1)));
  EXPECT_EQ(unread->find(2 * kPiece, 3 * kPiece + 10), nullptr);
  ASSERT_NE(unread->find(3 * kPiece, 3 * kPiece + 11), nullptr);
  EXPECT_EQ(unread->find(3 * kPiece, out_.size())->message(), "the file ends");
}

TEST_F(ReadAround, FailureThatMayPassIsAnError) {
  file_.bad_end = kFileBytes;
  for (const auto& error :
       {Error(ErrorCode::kUnavailable, "no answer"), base::system_error("read", ENOMEM)}) {
    file_.error = error;
    const auto unread = read_around(file_, 0, out_, kPiece, end_error);
    ASSERT_FALSE(unread);
    EXPECT_EQ(unread.error().message(), error.message());
  }
}

TEST(UnreadParts, InnerRangeHasTheOverlap) {
  UnreadParts parts;
  parts.add(10, 20, device_error());
  parts.add(20, 20, device_error());
  parts.add(30, 40, end_error());
  const auto inner = parts.within(15, 35);
  EXPECT_NE(inner.find(0, 5), nullptr);
  EXPECT_EQ(inner.find(5, 15), nullptr);
  EXPECT_NE(inner.find(15, 16), nullptr);
  EXPECT_TRUE(parts.within(20, 30).empty());
  UnreadParts joined;
  joined.add(100, parts);
  EXPECT_EQ(joined.find(0, 110), nullptr);
  ASSERT_NE(joined.find(139, 500), nullptr);
  EXPECT_EQ(joined.find(139, 500)->code(), ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace varve::store
