// SPDX-License-Identifier: Apache-2.0
#include "format/birth_mark.h"

#include <gtest/gtest.h>

#include <string>

#include "base/ids.h"

namespace varve::format {
namespace {

BirthMark mark(int first) {
  BirthMark mark{};
  mark[0] = static_cast<std::byte>(first);
  return mark;
}

TEST(Births, RoundTrip) {
  Births births;
  EXPECT_EQ(*decode_births(encode_births(births)), births);
  births[VersionNumber{1}] = {mark(1), SeriesId{3}, VersionNumber{1}, UINT64_MAX};
  births[VersionNumber{900}] = {mark(2), SeriesId{3}, VersionNumber{900}, {}};
  births[VersionNumber{kPoolBit + 5}] = {mark(3), SeriesId{4}, VersionNumber{7}, 0};
  births[VersionNumber{UINT32_MAX}] = {mark(4), SeriesId{UINT32_MAX}, VersionNumber{0}, 9};
  const auto bytes = encode_births(births);
  const auto back = decode_births(bytes);
  ASSERT_TRUE(back.has_value()) << back.error().message();
  EXPECT_EQ(*back, births);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(decode_births(bytes.substr(0, size)).has_value()) << size;
  }
  EXPECT_FALSE(decode_births(bytes + "x").has_value());
}

TEST(Births, ImpossibleOnesAreCorrupt) {
  const Births one{{VersionNumber{7}, {mark(1), SeriesId{3}, VersionNumber{7}, 5}}};
  const auto rejected = [&](std::size_t at, char value) {
    auto bytes = encode_births(one);
    bytes[at] = value;
    return !decode_births(bytes).has_value();
  };
  EXPECT_TRUE(rejected(0, 2)) << "more births than there are";
  EXPECT_TRUE(rejected(1, 0)) << "the birth 0";
  EXPECT_TRUE(rejected(2, 0)) << "no mark";
  EXPECT_TRUE(rejected(2 + 16 + 2, 2)) << "neither with a digest nor without";
  EXPECT_TRUE(rejected(2 + 16 + 2, 0)) << "bytes behind the end";
  EXPECT_FALSE(Birth::decode("").has_value());
  EXPECT_EQ(*Birth::decode(one.begin()->second.encode()), one.begin()->second);
}

TEST(Births, DigestOfAChunkDependsOnAllThatIdentifiesIt) {
  Fingerprint fingerprint{};
  const auto id = ChunkId::make(VersionNumber{3}, 9);
  const auto digest = chunk_digest(id, fingerprint, 5000);
  EXPECT_NE(chunk_digest(id.plus(1), fingerprint, 5000), digest);
  EXPECT_NE(chunk_digest(id, fingerprint, 5001), digest);
  fingerprint[31] = std::byte{1};
  EXPECT_NE(chunk_digest(id, fingerprint, 5000), digest);
}

}  // namespace
}  // namespace varve::format
