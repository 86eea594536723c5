// SPDX-License-Identifier: Apache-2.0
#include "format/parity.h"
#include "base/checksum.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/coding.h"
#include "format/container.h"

namespace varve::format {
namespace {

ParityIndex sample_index() {
  ParityIndex index;
  index.store = StoreId{3};
  index.percent = 5;
  index.members = {{SegmentNumber{7}, 1},
                   {SegmentNumber{0x80000009U}, 40'000},
                   {SegmentNumber{10}, 800 * kParityBlockBytes}};
  return index;
}

ParitySums sums_for(const ParityIndex& index) {
  ParitySums sums;
  for (std::uint32_t i = 0; i < index.blocks; ++i) sums.data.push_back(i * 77);
  for (std::uint32_t i = 0; i < index.shape().parity_total(); ++i) sums.parity.push_back(~i);
  return sums;
}

// A header with one field changed, and its checksum right again.
template <typename Int>
Result<ParityHeader> with(std::string header, std::size_t at, Int value) {
  std::memcpy(&header[at], &value, sizeof value);
  const auto sum = base::checksum64(base::as_bytes(header).first(56));
  std::memcpy(&header[56], &sum, sizeof sum);
  return decode_parity_header(base::as_bytes(header));
}

TEST(Parity, AIndexComesBack) {
  auto index = sample_index();
  index.blocks = 804;
  const auto sums = sums_for(index);
  index.blocks = 0;
  const auto parts = encode_parity_index(index, sums);
  EXPECT_EQ(index.blocks, 804U);
  EXPECT_EQ(index.shape().codewords, 5U);
  EXPECT_EQ(index.shape().data_blocks, 161U);
  EXPECT_EQ(index.shape().parity_blocks, 9U);
  const auto header = decode_parity_header(base::as_bytes(parts.header));
  ASSERT_TRUE(header);
  EXPECT_EQ(header->index_bytes(), parts.header.size() + parts.members.size() + parts.sums.size());
  EXPECT_EQ(header->file_bytes(), 2 * header->index_bytes() + 45 * kParityBlockBytes);
  const auto members = decode_parity_members(*header, base::as_bytes(parts.members));
  ASSERT_TRUE(members);
  EXPECT_EQ(*members, index);
  const auto decoded = decode_parity_sums(*header, base::as_bytes(parts.sums));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(*decoded, sums);
}

TEST(Parity, EveryFlippedBitIsFound) {
  auto index = sample_index();
  index.members.pop_back();
  index.blocks = 4;
  const auto sums = sums_for(index);
  const auto parts = encode_parity_index(index, sums);
  const auto right = decode_parity_header(base::as_bytes(parts.header));
  ASSERT_TRUE(right);
  for (std::size_t bit = 0; bit < parts.header.size() * 8; ++bit) {
    auto header = parts.header;
    header[bit / 8] = static_cast<char>(header[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(decode_parity_header(base::as_bytes(header))) << bit;
  }
  for (std::size_t bit = 0; bit < parts.members.size() * 8; ++bit) {
    auto members = parts.members;
    members[bit / 8] = static_cast<char>(members[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(decode_parity_members(*right, base::as_bytes(members))) << bit;
  }
  for (std::size_t bit = 0; bit < parts.sums.size() * 8; ++bit) {
    auto all = parts.sums;
    all[bit / 8] = static_cast<char>(all[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(decode_parity_sums(*right, base::as_bytes(all))) << bit;
  }
}

TEST(Parity, AnImpossibleHeaderIsRefusedBeforeAnythingIsAllocated) {
  auto index = sample_index();
  const auto header = encode_parity_index(index, {}).header;
  ASSERT_TRUE(with<std::uint16_t>(header, 6, 25));
  for (const unsigned percent : {0U, 26U, 100U, 0xffffU}) {
    EXPECT_FALSE(with(header, 6, static_cast<std::uint16_t>(percent))) << percent;
  }
  for (const std::uint32_t members : {0U, 805U, kParityMembersMax + 1, ~0U}) {
    EXPECT_FALSE(with<std::uint32_t>(header, 12, members)) << members;
  }
  for (const std::uint32_t blocks : {0U, 2U, kParityBlocksMax + 1, ~0U}) {
    EXPECT_FALSE(with<std::uint32_t>(header, 16, blocks)) << blocks;
  }
  EXPECT_FALSE(with<std::uint32_t>(header, 20, 1));
  EXPECT_FALSE(with<std::uint64_t>(header, 48, 1));
  const auto newer = with<std::uint16_t>(header, 4, 2);
  ASSERT_FALSE(newer);
  EXPECT_EQ(newer.error().code(), ErrorCode::kUnsupported);
  EXPECT_FALSE(decode_parity_header(base::as_bytes(header).first(63)));
}

TEST(Parity, MembersMustHaveTheBlocksOfTheHeader) {
  auto index = sample_index();
  auto parts = encode_parity_index(index, {});
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{40'000 + kParityBlockBytes},
                                    ~std::uint64_t{0}, std::uint64_t{1} << 40}) {
    auto members = parts.members;
    std::memcpy(&members[12 + 4], &bytes, sizeof bytes);
    auto header = *decode_parity_header(base::as_bytes(parts.header));
    header.members_checksum = base::checksum64(base::as_bytes(members));
    EXPECT_FALSE(decode_parity_members(header, base::as_bytes(members))) << bytes;
  }
}

}  // namespace
}  // namespace varve::format
