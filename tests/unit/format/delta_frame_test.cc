// SPDX-License-Identifier: Apache-2.0
// Frames with prefixes: docs/FORMAT.md §4.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "base/coding.h"
#include "format/container.h"
#include "format/frame_codec.h"
#include "format/prefix_cache.h"
#include "support/noise.h"
#include "support/test_keys.h"

namespace varve::format {
namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_of(const std::string& text) {
  const auto bytes = base::as_bytes(text);
  return {bytes.begin(), bytes.end()};
}

// A text that differs from that of other numbers in a few places.
std::string alike(std::size_t number, std::size_t bytes = 60'000) {
  auto text = test::noise(bytes, 1);
  text.replace(number * 1000, 40, test::noise(40, 100 + number));
  return text;
}

struct Container {
  ContainerHeader header;
  std::string text;  // The encoded header.
  Bytes data;
  std::vector<std::string> raw;
};

// Makes a container of a frame for each text. `prefixes`: distances.
Container make(const FrameCodec& codec, const std::vector<std::string>& raw,
               const std::vector<std::uint8_t>& prefixes) {
  Container made;
  made.raw = raw;
  made.header.store = StoreId{3};
  made.header.number = ContainerNumber{17};
  made.header.compact = true;
  made.data.resize(kContainerBytesMax);
  std::size_t end = 0;
  for (std::uint32_t i = 0; i < raw.size(); ++i) {
    const auto prefix = prefixes[i] == 0 ? Bytes() : bytes_of(raw[i - prefixes[i]]);
    const auto encoded = codec.compress(base::as_bytes(raw[i]), prefix);
    const auto stored = encoded.codec == Codec::kNone ? bytes_of(raw[i]) : encoded.stored;
    std::ranges::copy(stored, made.data.begin() + static_cast<std::ptrdiff_t>(end));
    end += stored.size();
    FrameEntry frame;
    frame.chunk_count = 1;
    frame.codec = encoded.codec;
    frame.prefix = prefixes[i];
    frame.stored_bytes = static_cast<std::uint32_t>(stored.size());
    frame.raw_bytes = static_cast<std::uint32_t>(raw[i].size());
    made.header.frames.push_back(frame);
    ChunkEntry chunk;
    chunk.id = ChunkId::make(VersionNumber{1}, i);
    chunk.raw_bytes = frame.raw_bytes;
    made.header.chunks.push_back(chunk);
  }
  made.text = test::must(codec.finish_container(made.header, made.data));
  return made;
}

Result<std::string> load(const FrameCodec& codec, const Container& made, std::uint32_t frame) {
  const auto& entry = made.header.frames[frame];
  Bytes out(entry.raw_bytes);
  VARVE_TRY(decode_frame(codec, made.header, frame,
                         std::span(made.data).subspan(extent_begin(entry), extent_bytes(entry)),
                         out));
  return std::string(base::as_text(out));
}

class DeltaFrame : public testing::TestWithParam<bool> {
 protected:
  const std::unique_ptr<const FrameCodec> codec = GetParam()
                                                      ? test::sealed_codec({Codec::kZstd, 1})
                                                      : make_plain_frame_codec({Codec::kZstd, 1});
};
INSTANTIATE_TEST_SUITE_P(PlainAndSealed, DeltaFrame, testing::Bool());

TEST_P(DeltaFrame, IsReadThroughItsBases) {
  std::vector<std::string> raw;
  for (std::size_t i = 0; i < 7; ++i) raw.push_back(alike(i));
  const auto made = make(*codec, raw, {0, 1, 1, 1, 4, 0, 6});
  const auto read = test::must(decode_container_header(base::as_bytes(made.text), codec->keys()));
  EXPECT_EQ(read, made.header);
  for (std::uint32_t i = 0; i < raw.size(); ++i) {
    EXPECT_EQ(test::must(load(*codec, made, i)), raw[i]) << i;
    const auto& frame = read.frames[i];
    EXPECT_EQ(frame.lead_bytes == 0, frame.prefix == 0);
    if (frame.prefix != 0) {
      EXPECT_LT(frame.stored_bytes, 2000U) << "what repeats is stored again";
    }
  }
  EXPECT_EQ(extent_begin(read.frames[3]), 0U);
  EXPECT_EQ(extent_begin(read.frames[6]), 0U);
}

// Successive frames of one chain: each is decoded once.
TEST_P(DeltaFrame, IsDecodedOnceWithACache) {
  std::vector<std::string> raw;
  for (std::size_t i = 0; i < 6; ++i) raw.push_back(alike(i));
  const auto made = make(*codec, raw, {0, 1, 1, 1, 4, 1});
  const auto decode = [&](PrefixCache& cache, std::uint32_t frame) {
    const auto& entry = made.header.frames[frame];
    Bytes out(entry.raw_bytes);
    const auto decoded = test::must(decode_frame(
        *codec, made.header, frame,
        std::span(made.data).subspan(extent_begin(entry), extent_bytes(entry)), out, cache));
    EXPECT_EQ(base::as_text(out), raw[frame]) << frame;
    return decoded / entry.raw_bytes;
  };
  PrefixCache cache(8);
  EXPECT_EQ(decode(cache, 3), 4U);
  EXPECT_EQ(decode(cache, 2), 0U);
  EXPECT_EQ(decode(cache, 4), 1U);
  EXPECT_EQ(decode(cache, 5), 1U);
  EXPECT_EQ(decode(cache, 3), 1U) << "no frame needs it, so it is not kept";
  EXPECT_EQ(decode(cache, 0), 0U);
  // A cache that is too small decodes more, and gives the same bytes.
  PrefixCache small(1);
  std::uint64_t sum = 0;
  for (const std::uint32_t frame : {3U, 5U, 2U, 4U, 0U}) sum += decode(small, frame);
  EXPECT_GT(sum, 6U);
}

// A frame of another container, or of another time, is not taken for the same frame.
TEST_P(DeltaFrame, IsFoundByItsPlaceAndItsChecksum) {
  const auto made = make(*codec, {alike(1), alike(2)}, {0, 1});
  PrefixCache cache(4);
  cache.insert(made.header, 0, std::make_shared<const Bytes>(bytes_of(made.raw[0])));
  EXPECT_NE(cache.find(made.header, 0), nullptr);
  EXPECT_EQ(cache.find(made.header, 1), nullptr);
  for (int change = 0; change < 4; ++change) {
    auto other = made.header;
    if (change == 0) other.store = StoreId{4};
    if (change == 1) other.number = ContainerNumber{18};
    if (change == 2) other.frames[0].checksum ^= 1;
    if (change == 3) other.frames[0].tag_end ^= 1;
    EXPECT_EQ(cache.find(other, 0), nullptr) << change;
  }
}

// The error of a damaged prefix is that of the frame, and nothing wrong is kept.
TEST_P(DeltaFrame, OfADamagedPrefixFailsWithACache) {
  auto made = make(*codec, {alike(1), alike(2)}, {0, 1});
  made.data[100] ^= std::byte{1};
  PrefixCache cache(4);
  const auto& entry = made.header.frames[1];
  Bytes out(entry.raw_bytes);
  const auto decoded = decode_frame(
      *codec, made.header, 1,
      std::span(made.data).subspan(extent_begin(entry), extent_bytes(entry)), out, cache);
  EXPECT_EQ(test::code_of(decoded), ErrorCode::kCorrupt);
  EXPECT_EQ(cache.find(made.header, 0), nullptr);
}

TEST_P(DeltaFrame, ReachesTheFirstByteOfTheLongestBase) {
  const auto prefix = test::noise(kFrameRawBytesMax, 7);
  auto changed = prefix.substr(0, kFrameRawBytesMax - 300) + test::noise(300, 8);
  const auto made = make(*codec, {prefix, changed}, {0, 1});
  EXPECT_LT(made.header.frames[1].stored_bytes, 1000U);
  EXPECT_EQ(test::must(load(*codec, made, 1)), changed);
}

TEST_P(DeltaFrame, DamageOfABaseIsDamageOfTheFrame) {
  auto made = make(*codec, {alike(0), alike(1), alike(2), alike(3)}, {0, 1, 1, 0});
  const auto& middle = made.header.frames[1];
  made.data[middle.offset + middle.stored_bytes / 2] ^= std::byte{1};
  EXPECT_TRUE(load(*codec, made, 0));
  EXPECT_FALSE(load(*codec, made, 1));
  EXPECT_FALSE(load(*codec, made, 2));
  EXPECT_TRUE(load(*codec, made, 3));
}

TEST_P(DeltaFrame, NeedsItsBase) {
  const auto made = make(*codec, {alike(0), alike(1)}, {0, 1});
  for (std::uint32_t number = 0; number < 2; ++number) {
    const auto& entry = made.header.frames[number];
    const auto stored = std::span(made.data).subspan(entry.offset, entry.stored_bytes);
    Bytes out(entry.raw_bytes);
    const auto place = place_of_frame(made.header, number);
    const auto prefix = bytes_of(alike(0));
    const auto read = number == 0 ? codec->decode_on(place, entry, prefix, stored, out)
                                  : codec->decode(place, entry, stored, out);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code(), ErrorCode::kCorrupt);
  }
}

TEST_P(DeltaFrame, StoredBytesCutShortAreDamage) {
  const auto made = make(*codec, {alike(0), alike(1)}, {0, 1});
  const auto& entry = made.header.frames[1];
  Bytes out(entry.raw_bytes);
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{10}, std::size_t{entry.lead_bytes},
                                  std::size_t{extent_bytes(entry)} - 1}) {
    const auto read = decode_frame(*codec, made.header, 1, std::span(made.data).first(bytes), out);
    ASSERT_FALSE(read) << bytes;
    EXPECT_EQ(read.error().code(), ErrorCode::kCorrupt);
  }
}

// Forged tables of a plain container.
class ForgedPrefixes : public testing::Test {
 protected:
  const std::unique_ptr<const FrameCodec> codec_ = make_plain_frame_codec({Codec::kZstd, 1});
  static constexpr std::size_t kFlags = 8;
  static constexpr std::size_t kTablesChecksum = 48;
  static constexpr std::size_t kFixedChecksum = 120;
  static constexpr std::size_t kEntryBytes = 24;

  static std::size_t prefix_at(std::size_t frame) {
    return kContainerFixedHeaderBytes + kEntryBytes * frame + 13;
  }
  static Result<ContainerHeader> decode(std::string text) {
    auto bytes = std::as_writable_bytes(std::span(text));
    base::store_le(&bytes[kTablesChecksum],
                   base::checksum64(bytes.subspan(kContainerFixedHeaderBytes)));
    base::store_le(&bytes[kFixedChecksum], base::checksum64(bytes.first(kFixedChecksum)));
    return decode_container_header(bytes);
  }
  static void expect_damage(const std::string& text) {
    const auto read = decode(text);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code(), ErrorCode::kCorrupt) << read.error().message();
  }
};

TEST_F(ForgedPrefixes, OutsideOfTheContainerOrTooFarAreRefused) {
  std::vector<std::string> raw;
  for (std::size_t i = 0; i < 6; ++i) raw.push_back(alike(i, 20'000));
  const auto made = make(*codec_, raw, {0, 1, 1, 1, 0, 0});
  ASSERT_TRUE(decode(made.text));
  for (const auto& [frame, prefix] : std::vector<std::pair<std::size_t, char>>{
           {0, 1}, {1, 2}, {3, 4}, {4, 1}, {5, 6}, {5, '\xff'}}) {
    auto text = made.text;
    text[prefix_at(frame)] = prefix;
    expect_damage(text);
  }
  auto text = made.text;
  text[prefix_at(4) + 1] = 1;
  expect_damage(text);
}

TEST_F(ForgedPrefixes, OfRawFramesAreRefused) {
  const auto made =
      make(*codec_, {test::noise(5000, 1), test::noise(5000, 2), alike(1), alike(2)}, {0, 0, 0, 1});
  ASSERT_EQ(made.header.frames[1].codec, Codec::kNone);
  auto text = made.text;
  text[prefix_at(1)] = 1;
  expect_damage(text);
}

TEST_F(ForgedPrefixes, TheFlagSaysWhetherThereAreBases) {
  const auto with = make(*codec_, {alike(0), alike(1)}, {0, 1});
  const auto without = make(*codec_, {alike(0), alike(1)}, {0, 0});
  EXPECT_EQ(with.text[kFlags] & 8, 8);
  EXPECT_EQ(without.text[kFlags] & 8, 0);
  for (auto text : {with.text, without.text}) {
    text[kFlags] = static_cast<char>(text[kFlags] ^ 8);
    expect_damage(text);
  }
}

TEST_F(ForgedPrefixes, ThatNeedTooManyStoredBytesAreRefused) {
  std::vector<std::string> raw;
  std::vector<std::uint8_t> prefixes;
  for (std::size_t i = 0; i < 5; ++i) {
    raw.push_back(test::noise(kFrameRawBytesMax, i));
    prefixes.push_back(0);
  }
  raw.push_back(alike(1));
  prefixes.push_back(0);
  raw.push_back(alike(2));
  prefixes.push_back(1);
  const auto made = make(*codec_, raw, prefixes);
  auto text = made.text;
  text[prefix_at(6)] = 3;
  EXPECT_TRUE(decode(text)) << "within the bound";
  text[prefix_at(6)] = 6;
  expect_damage(text);
}

}  // namespace
}  // namespace varve::format
