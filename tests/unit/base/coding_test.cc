// SPDX-License-Identifier: Apache-2.0
#include "base/coding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace varve::base {
namespace {

constexpr std::uint64_t kMax64 = std::numeric_limits<std::uint64_t>::max();

std::string varint_of(std::uint64_t v) {
  std::string out;
  ByteWriter(out).varint(v);
  return out;
}

TEST(Varint, LengthGrowsWithEverySevenBits) {
  EXPECT_EQ(varint_of(0).size(), 1U);
  EXPECT_EQ(varint_of(0x7f).size(), 1U);
  EXPECT_EQ(varint_of(0x80).size(), 2U);
  EXPECT_EQ(varint_of(0x3fff).size(), 2U);
  EXPECT_EQ(varint_of(0x4000).size(), 3U);
  EXPECT_EQ(varint_of(kMax64).size(), 10U);
}

TEST(Varint, BytesAreLeb128) { EXPECT_EQ(varint_of(300), "\xac\x02"); }

TEST(Varint, EveryPowerOfTwoAndItsNeighboursRoundTrip) {
  for (unsigned bit = 0; bit < 64; ++bit) {
    const std::uint64_t power = 1ULL << bit;
    for (const std::uint64_t v : {power - 1, power, power + 1}) {
      ByteReader r(std::string_view{});
      const std::string bytes = varint_of(v);
      r = ByteReader(bytes);
      EXPECT_EQ(r.varint(), v);
      EXPECT_TRUE(r.done());
    }
  }
}

TEST(Varint, OverSixtyFourBitsFails) {
  const std::string eleven(10, '\xff');
  ByteReader eleven_bytes(eleven);
  EXPECT_EQ(eleven_bytes.varint(), 0U);
  EXPECT_FALSE(eleven_bytes.ok());
  const std::string too_high = std::string(9, '\xff') + '\x02';
  ByteReader r(too_high);
  r.varint();
  EXPECT_FALSE(r.ok());
}

TEST(Varint, EveryTruncationFails) {
  const std::string whole = varint_of(kMax64);
  for (std::size_t n = 0; n < whole.size(); ++n) {
    ByteReader r(std::string_view(whole).substr(0, n));
    r.varint();
    EXPECT_FALSE(r.ok()) << n;
  }
}

TEST(Zigzag, SmallMagnitudesBecomeSmall) {
  EXPECT_EQ(zigzag(0), 0U);
  EXPECT_EQ(zigzag(-1), 1U);
  EXPECT_EQ(zigzag(1), 2U);
  EXPECT_EQ(zigzag(std::numeric_limits<std::int64_t>::min()), kMax64);
}

TEST(Zigzag, RandomNumbersRoundTrip) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    const auto v = static_cast<std::int64_t>(random() >> (random() % 64));
    EXPECT_EQ(unzigzag(zigzag(v)), v);
    EXPECT_EQ(unzigzag(zigzag(-v)), -v);
  }
}

TEST(ByteWriter, IntegersAreLittleEndian) {
  std::string out;
  ByteWriter w(out);
  w.u8(0x01);
  w.u16(0x0302);
  w.u32(0x07060504);
  w.u64(0x0f0e0d0c0b0a0908);
  std::string expected;
  for (char c = 1; c <= 15; ++c) expected += c;
  EXPECT_EQ(out, expected);
}

TEST(ByteReader, ReadsWhatTheWriterWrote) {
  std::string out;
  ByteWriter w(out);
  w.u16(0xbeef);
  w.svarint(-12345);
  w.sized_text(std::string_view("a\0b", 3));
  w.u64(kMax64);
  ByteReader r(out);
  EXPECT_EQ(r.u16(), 0xbeef);
  EXPECT_EQ(r.svarint(), -12345);
  EXPECT_EQ(r.sized_text(3), std::string_view("a\0b", 3));
  EXPECT_EQ(r.u64(), kMax64);
  EXPECT_TRUE(r.done());
}

TEST(ByteReader, AfterAFailureEverythingIsZero) {
  ByteReader r(std::string_view("abc"));
  EXPECT_EQ(r.u32(), 0U);
  EXPECT_FALSE(r.ok());
  EXPECT_EQ(r.u8(), 0U);
  EXPECT_EQ(r.left(), 0U);
  EXPECT_TRUE(r.bytes(1).empty());
  EXPECT_FALSE(r.done());
}

TEST(ByteReader, SizedTextOverItsBoundFails) {
  std::string out;
  ByteWriter(out).sized_text("four");
  EXPECT_EQ(ByteReader(out).sized_text(4), "four");
  ByteReader r(out);
  EXPECT_EQ(r.sized_text(3), "");
  EXPECT_FALSE(r.ok());
}

TEST(ByteReader, LengthPastTheEndFails) {
  std::string out;
  ByteWriter(out).varint(kMax64);
  ByteReader r(out);
  EXPECT_EQ(r.sized_text(kMax64), "");
  EXPECT_FALSE(r.ok());
}

TEST(BigEndian, KeysSortAsTheirNumbers) {
  const std::vector<std::uint64_t> numbers = {0, 1, 255, 256, 1ULL << 31, 1ULL << 32, kMax64};
  std::vector<std::string> keys;
  for (const auto v : numbers) keys.push_back(be64(v));
  EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end()));
  for (std::size_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(load_be64(keys[i]), numbers[i]);
  EXPECT_EQ(be32(0x01020304), "\x01\x02\x03\x04");
  EXPECT_EQ(load_be32(be32(0xfffefdfc)), 0xfffefdfcU);
}

TEST(BigEndian, ShortKeyReadsAsZero) {
  EXPECT_EQ(load_be32("abc"), 0U);
  EXPECT_EQ(load_be64("abcdefg"), 0U);
}

}  // namespace
}  // namespace varve::base
