// SPDX-License-Identifier: Apache-2.0
// The promises of every FrameCodec, and of every compression method of the registry.
#include "format/frame_codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support/test_keys.h"

namespace varve::format {
namespace {

using Bytes = std::vector<std::byte>;

struct Subject {
  std::string name;
  std::unique_ptr<const FrameCodec> (*make)(const Compression& compression);
  bool binds_places = false;
};

class FrameCodecContract : public testing::TestWithParam<Subject> {
 protected:
  struct Stored {
    FramePlace place;
    FrameEntry entry;
    Bytes bytes;
  };
  // Stores a frame in a container, between two others.
  static Stored store(const FrameCodec& codec, const Bytes& raw) {
    const EncodedFrame encoded = codec.compress(raw);
    Stored stored;
    stored.bytes = encoded.codec == Codec::kNone ? raw : encoded.stored;
    FrameEntry one;
    one.chunk_count = one.raw_bytes = one.stored_bytes = 1;
    FrameEntry frame = one;
    frame.codec = encoded.codec;
    frame.raw_bytes = static_cast<std::uint32_t>(raw.size());
    frame.stored_bytes = static_cast<std::uint32_t>(stored.bytes.size());
    ContainerHeader header;
    header.store = StoreId{3};
    header.number = ContainerNumber{17};
    header.frames = {one, frame, one};
    header.chunks.resize(3);
    for (std::uint32_t i = 0; i < 3; ++i) {
      header.chunks[i].id = ChunkId::make(VersionNumber{1}, i);
      header.chunks[i].raw_bytes = header.frames[i].raw_bytes;
    }
    Bytes data(kContainerBytesMax);
    std::ranges::copy(stored.bytes, data.begin() + 1);
    test::must(codec.finish_container(header, data));
    stored.place = place_of_frame(header, 1);
    stored.entry = header.frames[1];
    std::copy_n(data.begin() + 1, stored.bytes.size(), stored.bytes.begin());
    return stored;
  }
  static Result<Bytes> load(const FrameCodec& codec, const Stored& stored) {
    Bytes raw(stored.entry.raw_bytes);
    VARVE_TRY(codec.decode(stored.place, stored.entry, stored.bytes, raw));
    return raw;
  }
  /// Returns each method with its lowest and highest level.
  static std::vector<Compression> all_compressions() {
    std::vector<Compression> all;
    for (const auto& method : compression_methods()) {
      all.push_back({method.codec, method.level_min});
      if (method.level_max != method.level_min) all.push_back({method.codec, method.level_max});
    }
    return all;
  }
};

Bytes noise(std::size_t bytes) {
  std::mt19937_64 random(bytes);
  Bytes out(bytes);
  for (auto& b : out) b = static_cast<std::byte>(random());
  return out;
}

Bytes compressible(std::size_t bytes) {
  std::mt19937_64 random(bytes);
  Bytes out(bytes);
  for (auto& b : out) b = static_cast<std::byte>(random() % 4);
  return out;
}

TEST_P(FrameCodecContract, FramesRoundTripInTheirPlace) {
  for (const auto& compression : all_compressions()) {
    const auto codec = GetParam().make(compression);
    EXPECT_EQ(codec->compression(), compression);
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{33}, kFrameRawBytesMax}) {
      for (const Bytes& raw : {noise(bytes), compressible(bytes)}) {
        const auto back = load(*codec, store(*codec, raw));
        ASSERT_TRUE(back.has_value()) << back.error().message();
        EXPECT_TRUE(*back == raw) << compression_text(compression) << " " << bytes;
      }
    }
  }
}

TEST_P(FrameCodecContract, FramesOfEveryMethodAreReadWhateverTheOwnMethod) {
  const Bytes raw = compressible(9000);
  for (const auto& writing : all_compressions()) {
    const auto stored = store(*GetParam().make(writing), raw);
    for (const auto& reading : all_compressions()) {
      const auto back = load(*GetParam().make(reading), stored);
      ASSERT_TRUE(back.has_value()) << back.error().message();
      EXPECT_TRUE(*back == raw);
    }
  }
}

TEST_P(FrameCodecContract, EveryFlippedByteReturnsCorrupt) {
  for (const auto& compression : all_compressions()) {
    const auto codec = GetParam().make(compression);
    Stored stored = store(*codec, compressible(2000));
    for (auto& b : stored.bytes) {
      b ^= std::byte{0x40};
      const auto back = load(*codec, stored);
      ASSERT_FALSE(back.has_value());
      EXPECT_EQ(back.error().code(), ErrorCode::kCorrupt);
      b ^= std::byte{0x40};
    }
  }
}

TEST_P(FrameCodecContract, EveryFlippedByteOfThePaddingReturnsCorrupt) {
  const auto codec = GetParam().make({Codec::kNone, 0});
  ContainerHeader header;
  header.store = StoreId{3};
  header.number = ContainerNumber{17};
  header.frames = {{.chunk_count = 1, .stored_bytes = 5, .raw_bytes = 5}};
  header.chunks.resize(1);
  header.chunks[0].id = ChunkId::make(VersionNumber{1}, 0);
  header.chunks[0].raw_bytes = 5;
  Bytes data(kContainerBytesMax);
  test::must(codec->finish_container(header, data));
  const auto padding = std::span(data).subspan(
      header.data_bytes, header.stored_bytes() - header.header_bytes - header.data_bytes);
  ASSERT_GT(padding.size(), 4000U);
  EXPECT_TRUE(codec->verify_padding(header, padding));
  EXPECT_TRUE(codec->verify_padding(header, {}));
  for (auto& b : padding) {
    b ^= std::byte{0x40};
    const auto verified = codec->verify_padding(header, padding);
    ASSERT_FALSE(verified.has_value());
    EXPECT_EQ(verified.error().code(), ErrorCode::kCorrupt);
    b ^= std::byte{0x40};
  }
}

TEST_P(FrameCodecContract, OtherPlacesAreRefusedIfTheCodecBindsPlaces) {
  const auto codec = GetParam().make({Codec::kZstd, 1});
  auto stored = store(*codec, compressible(2000));
  std::vector<FramePlace> others(4, stored.place);
  others[0].unit = FramePlace::Unit::kManifest;
  others[1].owner = 4;
  others[2].number = 18;
  others[3].frame = 6;
  for (const auto& other : others) {
    stored.place = other;
    EXPECT_EQ(load(*codec, stored).has_value(), !GetParam().binds_places);
  }
}

TEST_P(FrameCodecContract, ThreadsDoNotDisturbEachOther) {
  const auto codec = GetParam().make({Codec::kZstd, 3});
  std::vector<int> good(4, 0);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < good.size(); ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 50; ++i) {
        const Bytes raw = compressible(1000 + 1000 * t + i);
        const auto back = load(*codec, store(*codec, raw));
        good[t] += back && *back == raw ? 1 : 0;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good, std::vector<int>(4, 50));
}

INSTANTIATE_TEST_SUITE_P(All, FrameCodecContract,
                         testing::Values(Subject{"plain", make_plain_frame_codec, false},
                                         Subject{"sealed",
                                                 [](const Compression& compression) {
                                                   return test::sealed_codec(compression);
                                                 },
                                                 true}),
                         [](const auto& subject) { return subject.param.name; });

TEST(CompressionRegistry, EveryMethodRoundTripsThroughItsText) {
  for (const auto& method : compression_methods()) {
    EXPECT_EQ(find_compression(static_cast<std::uint32_t>(method.codec)), &method);
    const auto plain = parse_compression(method.name);
    ASSERT_TRUE(plain.has_value());
    EXPECT_EQ(*plain, (Compression{method.codec, method.level_default}));
    EXPECT_EQ(*parse_compression(compression_text(*plain)), *plain);
    EXPECT_TRUE(check_compression(*plain).has_value());
    EXPECT_EQ(method.compress == nullptr, method.decompress == nullptr);
    EXPECT_FALSE(method.help.empty());
  }
  EXPECT_EQ(find_compression(200), nullptr);
}

TEST(CompressionRegistry, OddTextsAreRefused) {
  EXPECT_EQ(parse_compression("lz4").error().code(), ErrorCode::kUnsupported);
  EXPECT_EQ(parse_compression("").error().code(), ErrorCode::kUnsupported);
  for (const char* text : {"zstd:", "zstd:0", "zstd:20", "zstd:-1", "zstd:1x", "none:1"}) {
    const auto parsed = parse_compression(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_EQ(parsed.error().code(), ErrorCode::kInvalid);
  }
}

}  // namespace
}  // namespace varve::format
