// SPDX-License-Identifier: Apache-2.0
#include "format/container_record.h"

#include <gtest/gtest.h>

#include <string>

#include "support/format_samples.h"

namespace varve::format {
namespace {

TEST(ContainerRecord, ImpossibleValuesAreCorrupt) {
  ContainerRecord record;
  record.segment = SegmentNumber{1};
  record.offset = 8192;
  record.header_bytes = 4096;
  record.data_bytes = 5000;
  record.chunks = 3;
  record.raw_bytes = 9000;
  record.live_bytes = 8000;
  record.birth = VersionNumber{7};
  EXPECT_EQ(record.end(), 8192U + 4096 + 8192);
  const auto rejected = [](const std::string& bytes) {
    const auto decoded = ContainerRecord::decode(ContainerNumber{1}, bytes);
    return !decoded && decoded.error().code() == ErrorCode::kCorrupt;
  };
  ASSERT_TRUE(ContainerRecord::decode(ContainerNumber{1}, record.encode()));
  EXPECT_TRUE(rejected(""));
  EXPECT_TRUE(rejected(record.encode() + "x"));
  EXPECT_TRUE(rejected(record.encode().substr(1)));
  auto bad = record;
  bad.header_bytes = 0;
  EXPECT_TRUE(rejected(bad.encode()));
  bad = record;
  bad.data_bytes = kContainerBytesMax;
  EXPECT_TRUE(rejected(bad.encode()));
  bad = record;
  bad.raw_bytes = 1ULL << 50;
  EXPECT_TRUE(rejected(bad.encode()));
  bad = record;
  bad.live_bytes = 9001;
  EXPECT_TRUE(rejected(bad.encode()));
  auto compact = record;
  compact.compact = true;
  compact.offset = 8191;
  compact.header_bytes = 129;
  const auto decoded = ContainerRecord::decode(ContainerNumber{1}, compact.encode());
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->end(), 8191U + 129 + 5000);
  EXPECT_EQ(decoded->birth, VersionNumber{7});
  EXPECT_EQ(decoded->live_bytes, 8000U);
  for (auto sealed : {record, compact}) {
    const auto plain = sealed.encode();
    sealed.sealed = true;
    sealed.total_bytes = sealed.compact ? 5200 : 16384;
    sealed.salt_start = 0x8877665544332211;
    const auto again = ContainerRecord::decode(ContainerNumber{1}, sealed.encode());
    ASSERT_TRUE(again);
    EXPECT_EQ(again->encode(), sealed.encode());
    EXPECT_EQ(again->salt_start, sealed.salt_start);
    EXPECT_EQ(again->end(), sealed.offset + sealed.total_bytes);
    EXPECT_EQ(again->form(), (ContainerForm{sealed.compact, true}));
    EXPECT_TRUE(rejected(sealed.encode().substr(0, plain.size())));
    sealed.total_bytes = sealed.compact ? 5128 : 8192;
    EXPECT_TRUE(rejected(sealed.encode())) << "shorter than its parts";
    sealed.total_bytes = 2 * kContainerBytesMax;
    EXPECT_TRUE(rejected(sealed.encode()));
  }
}

TEST(ContainerRecord, ChecksumTellsContainersOfEqualLengthsApart) {
  auto header = sample_header();
  static_cast<void>(encode_container_header(header));
  const auto record = ContainerRecord::of(header, SegmentNumber{3}, 8192);
  ASSERT_TRUE(record.checksum.has_value());
  const auto back = ContainerRecord::decode(record.number, record.encode());
  ASSERT_TRUE(back.has_value()) << back.error().message();
  EXPECT_EQ(back->checksum, record.checksum);
  EXPECT_TRUE(back->may_be(header));
  auto other = header;
  other.chunks[0].fingerprint[0] ^= std::byte{1};
  static_cast<void>(encode_container_header(other));
  EXPECT_FALSE(back->may_be(other));
  // The record of an earlier Varve cannot tell.
  auto older = record;
  older.checksum.reset();
  const auto decoded = ContainerRecord::decode(older.number, older.encode());
  ASSERT_TRUE(decoded.has_value());
  EXPECT_FALSE(decoded->checksum.has_value());
  EXPECT_TRUE(decoded->may_be(other));
  other.number = ContainerNumber{static_cast<std::uint32_t>(other.number) + 1};
  EXPECT_FALSE(decoded->may_be(other));
}

}  // namespace
}  // namespace varve::format
