// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "base/coding.h"
#include "base/random_bytes.h"
#include "format/container.h"
#include "format/frame_codec.h"
#include "support/format_samples.h"
#include "support/repeated_random.h"
#include "support/sealed_pairs.h"
#include "support/test_keys.h"

namespace varve::format {
namespace {

using base::as_bytes;
using test::must;
using test::sealed_codec;
using test::test_keys;

// A container with its codec's bytes, and what its frames hold.
struct Sealed {
  ContainerHeader header;
  std::string bytes;
  std::vector<std::string> raw;
};

std::string noise(std::size_t bytes) {
  std::mt19937_64 random(bytes);
  std::string out(bytes, '\0');
  for (auto& c : out) c = static_cast<char>(random());
  return out;
}

// Seals a container of the frames; each is one chunk, and compressed if that helps.
Sealed seal_frames(const FrameCodec& codec, std::vector<std::string> frames, bool compact = false,
                   std::uint32_t number = 9, std::uint32_t store = 2) {
  Sealed sealed;
  sealed.raw = std::move(frames);
  auto& header = sealed.header;
  header.store = static_cast<StoreId>(store);
  header.number = static_cast<ContainerNumber>(number);
  header.compact = compact;
  std::vector<std::byte> data(kContainerBytesMax);
  std::size_t used = 0;
  for (const auto& raw : sealed.raw) {
    auto encoded = codec.compress(as_bytes(raw));
    const auto stored =
        encoded.codec == Codec::kNone ? as_bytes(raw) : std::span<const std::byte>(encoded.stored);
    std::ranges::copy(stored, data.begin() + static_cast<std::ptrdiff_t>(used));
    used += stored.size();
    FrameEntry frame;
    frame.chunk_count = 1;
    frame.raw_bytes = static_cast<std::uint32_t>(raw.size());
    frame.stored_bytes = static_cast<std::uint32_t>(stored.size());
    frame.codec = encoded.codec;
    header.frames.push_back(frame);
    header.chunks.push_back(
        chunk(ChunkId::make(VersionNumber{4}, static_cast<std::uint32_t>(header.chunks.size())),
              frame.raw_bytes));
  }
  sealed.bytes = must(codec.finish_container(header, data));
  EXPECT_EQ(sealed.bytes.size(), header.header_bytes);
  sealed.bytes += base::as_text(std::span(data).first(header.stored_bytes() - sealed.bytes.size()));
  return sealed;
}

// Returns the frames that open; "" for one that does not. Nothing if the header does not open.
std::vector<std::string> open_frames(const FrameCodec& codec, std::string_view bytes) {
  const auto header = decode_container_header(as_bytes(bytes), codec.keys());
  if (!header) {
    EXPECT_EQ(header.error().code(), ErrorCode::kCorrupt) << header.error().message();
    return {};
  }
  std::vector<std::string> frames;
  for (std::uint32_t i = 0; i < header->frames.size(); ++i) {
    const auto& frame = header->frames[i];
    std::string& raw = frames.emplace_back(frame.raw_bytes, '\0');
    const auto at = header->header_bytes + std::size_t{frame.offset};
    const auto decoded =
        codec.decode(place_of_frame(*header, i), frame,
                     as_bytes(bytes.substr(std::min(at, bytes.size()), frame.stored_bytes)),
                     std::as_writable_bytes(std::span(raw)));
    if (decoded) continue;
    EXPECT_EQ(decoded.error().code(), ErrorCode::kCorrupt);
    raw.clear();
  }
  return frames;
}

// Makes the checksum of the fixed header right again, as a forger would.
void sum_fixed_header(std::string& bytes) {
  base::store_le(reinterpret_cast<std::byte*>(bytes.data()) + 120,
                 base::checksum64(as_bytes(bytes).first(120)));
}

const std::vector<std::string> kContents{"chunk one", noise(5000), compressible_text(9000),
                                         noise(5000)};

class SealedContainer : public testing::TestWithParam<crypto::Cipher> {
 protected:
  std::unique_ptr<const FrameCodec> codec_ =
      sealed_codec({Codec::kZstd, 1}, test_keys(7, test::kTestRepositoryId, GetParam()));
};

TEST_P(SealedContainer, RoundTrips) {
  for (const bool compact : {false, true}) {
    const auto sealed = seal_frames(*codec_, kContents, compact);
    EXPECT_EQ(open_frames(*codec_, sealed.bytes), kContents);
    const auto header = must(decode_container_header(as_bytes(sealed.bytes), codec_->keys()));
    EXPECT_EQ(header, sealed.header);
    EXPECT_EQ(must(container_length(as_bytes(sealed.bytes))), sealed.bytes.size());
    EXPECT_EQ(must(container_outer_checksum(as_bytes(sealed.bytes))),
              base::checksum64(as_bytes(sealed.bytes).subspan(128)));
  }
}

TEST_P(SealedContainer, WithoutChunksRoundTrips) {
  const auto sealed = seal_frames(*codec_, {});
  EXPECT_EQ(sealed.bytes.size(), kContainerAlignment);
  EXPECT_TRUE(decode_container_header(as_bytes(sealed.bytes), codec_->keys()));
}

TEST_P(SealedContainer, EachFlippedBitIsDetectedWhereItIsRead) {
  auto sealed = seal_frames(*codec_, kContents, true);
  const auto outer = must(container_outer_checksum(as_bytes(sealed.bytes)));
  for (std::size_t at = 0; at < sealed.bytes.size(); ++at) {
    auto& byte = sealed.bytes[at];
    byte = static_cast<char>(byte ^ (1 << at % 8));
    const auto opened = open_frames(*codec_, sealed.bytes);
    ASSERT_EQ(opened.empty(), at < sealed.header.header_bytes) << at;
    for (std::size_t i = 0; i < opened.size(); ++i) {
      const auto& frame = sealed.header.frames[i];
      const auto begin = sealed.header.header_bytes + frame.offset;
      const bool here = at >= begin && at < begin + frame.stored_bytes;
      ASSERT_EQ(opened[i], here ? "" : kContents[i]) << "byte " << at << " frame " << i;
    }
    if (at >= 128) {
      ASSERT_NE(base::checksum64(as_bytes(sealed.bytes).subspan(128)), outer) << at;
    }
    byte = static_cast<char>(byte ^ (1 << at % 8));
  }
}

TEST_P(SealedContainer, ForgedClearFieldsAreRefused) {
  // Everything in the fixed header is authenticated, the checksum of the container included.
  const auto sealed = seal_frames(*codec_, kContents);
  for (std::size_t at = 0; at < 120; ++at) {
    for (const int change : {1, 2, 0x80}) {
      auto forged = sealed.bytes;
      forged[at] = static_cast<char>(forged[at] ^ change);
      sum_fixed_header(forged);
      const auto header = decode_container_header(as_bytes(forged), codec_->keys());
      ASSERT_FALSE(header) << "byte " << at;
      if (header.error().code() == ErrorCode::kUnsupported) {
        EXPECT_LT(at, 12U);
      }
    }
  }
}

TEST_P(SealedContainer, SwappedFramesDoNotOpen) {
  // Frames 1 and 3 have the same lengths, and their chunks, too.
  const auto sealed = seal_frames(*codec_, kContents);
  ASSERT_EQ(sealed.header.frames[1].stored_bytes, sealed.header.frames[3].stored_bytes);
  auto swapped = sealed.bytes;
  const auto first = sealed.header.header_bytes + sealed.header.frames[1].offset;
  const auto second = sealed.header.header_bytes + sealed.header.frames[3].offset;
  std::swap_ranges(swapped.begin() + first, swapped.begin() + first + 5000,
                   swapped.begin() + second);
  EXPECT_EQ(open_frames(*codec_, swapped),
            (std::vector<std::string>{kContents[0], "", kContents[2], ""}));
}

TEST_P(SealedContainer, PartsOfAnotherContainerDoNotOpen) {
  const auto one = seal_frames(*codec_, kContents, false, 9);
  // As after a crash, which gives a number back: only the salt differs.
  const auto other = seal_frames(*codec_, kContents, false, 9);
  ASSERT_EQ(one.bytes.size(), other.bytes.size());
  EXPECT_NE(one.header.seal->salt, other.header.seal->salt);
  const auto header_bytes = one.header.header_bytes;
  const auto mixed = one.bytes.substr(0, header_bytes) + other.bytes.substr(header_bytes);
  EXPECT_EQ(open_frames(*codec_, mixed), std::vector<std::string>(4));
  const auto tables = one.bytes.substr(0, 128) + other.bytes.substr(128, header_bytes - 128) +
                      one.bytes.substr(header_bytes);
  EXPECT_TRUE(open_frames(*codec_, tables).empty());
}

TEST_P(SealedContainer, ContainersOfOtherPlacesAndRepositoriesDoNotOpen) {
  const auto sealed = seal_frames(*codec_, kContents);
  const auto cipher = GetParam();
  for (const auto& ring : {test_keys(8, test::kTestRepositoryId, cipher),
                           test_keys(7, std::string(32, 'f'), cipher)}) {
    EXPECT_TRUE(open_frames(*sealed_codec({}, ring), sealed.bytes).empty());
  }
  for (const std::size_t field : {12, 16}) {  // The store and the number.
    auto moved = sealed.bytes;
    moved[field] = static_cast<char>(moved[field] + 1);
    sum_fixed_header(moved);
    EXPECT_TRUE(open_frames(*codec_, moved).empty());
  }
}

TEST_P(SealedContainer, FramesOpenInTheirOwnPlaceOnly) {
  const auto sealed = seal_frames(*codec_, kContents);
  const auto place = place_of_frame(sealed.header, 1);
  std::vector<FramePlace> others(6, place);
  ++others[0].owner;
  ++others[1].number;
  ++others[2].frame;
  others[3].compact = true;
  ++others[4].seal->total_bytes;
  others[5].seal.reset();
  const auto& frame = sealed.header.frames[1];
  const auto stored =
      as_bytes(sealed.bytes).subspan(sealed.header.header_bytes + frame.offset, frame.stored_bytes);
  std::vector<std::byte> raw(frame.raw_bytes);
  EXPECT_TRUE(codec_->decode(place, frame, stored, raw));
  for (const auto& other : others) {
    const auto decoded = codec_->decode(other, frame, stored, raw);
    ASSERT_FALSE(decoded);
    EXPECT_EQ(decoded.error().code(), ErrorCode::kCorrupt);
  }
}

INSTANTIATE_TEST_SUITE_P(Ciphers, SealedContainer,
                         testing::Values(crypto::Cipher::kAes256Gcm,
                                         crypto::Cipher::kChaCha20Poly1305),
                         [](const auto& cipher) {
                           return cipher.param == crypto::Cipher::kAes256Gcm ? "Aes" : "ChaCha";
                         });

TEST(SealedContainers, PlainOnesAreRefusedInAnEncryptedRepositoryAndTheReverse) {
  const auto codec = sealed_codec();
  const auto plain = make_plain_frame_codec({});
  const auto one = seal_frames(*codec, kContents);
  const auto other = seal_frames(*plain, kContents);
  EXPECT_EQ(open_frames(*plain, other.bytes), kContents);
  EXPECT_TRUE(open_frames(*codec, other.bytes).empty());
  EXPECT_TRUE(open_frames(*plain, one.bytes).empty());
}

TEST(SealedContainers, NothingButTheLengthIsInTheClear) {
  // Two containers of one length that hold 2 and 200 chunks differ everywhere but in the magic, the
  // form, the store, the number and the length.
  const auto codec = sealed_codec();
  std::vector<std::string> many;
  for (std::size_t i = 0; i < 200; ++i) many.push_back(noise(100 + i % 7));
  const auto first = seal_frames(*codec, {noise(19000), noise(17000)});
  const auto second = seal_frames(*codec, many);
  ASSERT_EQ(first.bytes.size(), second.bytes.size());
  EXPECT_NE(first.header.header_bytes, second.header.header_bytes);
  EXPECT_EQ(first.bytes.substr(0, 24), second.bytes.substr(0, 24));
  std::size_t same = 0;
  for (std::size_t i = 24; i < first.bytes.size(); ++i) {
    same += first.bytes[i] == second.bytes[i] ? 1 : 0;
  }
  EXPECT_LT(same, first.bytes.size() / 128);
  // No length or count stands in it as a number, and no fingerprint.
  for (const auto* sealed : {&first, &second}) {
    const auto& header = sealed->header;
    for (const std::uint32_t value :
         {header.header_bytes, header.data_bytes, header.chunks[0].raw_bytes,
          static_cast<std::uint32_t>(header.raw_bytes)}) {
      const std::string number(reinterpret_cast<const char*>(&value), 4);
      EXPECT_EQ(sealed->bytes.find(number), std::string::npos) << value;
    }
    const auto print = base::as_text(header.chunks[0].fingerprint);
    EXPECT_EQ(sealed->bytes.find(print.substr(0, 8)), std::string::npos);
  }
}

TEST(SealedContainers, LengthsArePaddedByPadme) {
  const ContainerForm form{true, true};
  EXPECT_EQ(container_bytes(200, 0, form), 208U);
  EXPECT_EQ(container_bytes(200, 9, form), 224U);
  EXPECT_EQ(container_bytes(300, 100000, form), 100352U);
  EXPECT_EQ(container_bytes(0, kContainerBytesMax, form), kContainerBytesMax);
  EXPECT_EQ(container_bytes(0, kContainerBytesMax - 65535, form), kContainerBytesMax);
  EXPECT_EQ(container_bytes(4096, 1, {false, true}), 8192U);
  EXPECT_EQ(container_bytes(4096, 1, {false, false}), 8192U);
  EXPECT_EQ(container_bytes(200, 9, {true, false}), 209U);
  std::set<std::uint64_t> lengths;
  for (std::uint64_t bytes = 128; bytes <= kContainerBytesMax; bytes += 1 + bytes / 1000) {
    const auto total = container_bytes(bytes, 0, form);
    ASSERT_GE(total, bytes);
    ASSERT_LE(total - bytes, bytes / (bytes < 256 ? 8 : bytes < 65536 ? 16 : 32)) << bytes;
    lengths.insert(total);
  }
  EXPECT_LT(lengths.size(), 400U);
}

TEST(SealedContainers, FailedSealingLeavesTheFramesAsTheyWere) {
  // A frame that was sealed and then sealed again would open to wrong bytes.
  bool fails = true;
  const auto codec = sealed_codec({}, test_keys(), [&]() -> Result<crypto::Salt> {
    if (fails) return Error(ErrorCode::kIo, "no random bytes");
    return base::random_bytes<crypto::kSaltBytes>();
  });
  ContainerHeader header = sample_header();
  header.frames.resize(1);
  header.chunks.resize(2);
  std::vector<std::byte> data(kContainerBytesMax, std::byte{'x'});
  const auto before = data;
  ASSERT_FALSE(codec->finish_container(header, data));
  EXPECT_EQ(data, before);
  fails = false;
  const auto bytes = must(codec->finish_container(header, data));
  std::vector<std::byte> raw(68536);
  ASSERT_TRUE(codec->decode(place_of_frame(header, 0), header.frames[0],
                            std::span(data).first(68536), raw));
  EXPECT_TRUE(std::ranges::equal(raw, std::span(before).first(68536)));
}

// As two futures of a virtual machine that goes back to a snapshot. The nonces of a container are
// counted, so containers that differ must have different keys.
TEST(SealedContainers, RandomBytesThatRepeatGiveContainersThatDifferDifferentKeys) {
  const test::SealedPairs pairs;
  const test::RepeatedRandom repeated;
  const auto codec = sealed_codec();
  std::set<crypto::Salt> salts;
  const auto seal = [&](const std::function<void(ContainerHeader&)>& change, char byte) {
    ContainerHeader header = sample_header();
    change(header);
    std::vector<std::byte> data(kContainerBytesMax, static_cast<std::byte>(byte));
    must(codec->finish_container(header, data));
    return salts.insert(header.seal->salt).second;
  };
  const auto nothing = [](ContainerHeader&) {};
  EXPECT_TRUE(seal(nothing, 'x'));
  EXPECT_FALSE(seal(nothing, 'x'));  // The same container.
  EXPECT_TRUE(seal(nothing, 'y'));   // Other bytes of the same chunks, as by another compression.
  EXPECT_TRUE(seal([](auto& header) { header.chunks[0].fingerprint[3] ^= std::byte{1}; }, 'x'));
  EXPECT_TRUE(seal([](auto& header) { ++header.chunks[0].id.value; }, 'x'));
  EXPECT_TRUE(seal([](auto& header) { header.number = ContainerNumber{78}; }, 'x'));
  EXPECT_TRUE(seal([](auto& header) { header.store = StoreId{78}; }, 'x'));
  EXPECT_TRUE(seal([](auto& header) { header.compact = !header.compact; }, 'x'));
  EXPECT_EQ(pairs.counts().repeated, 0U);
  EXPECT_GT(pairs.counts().equal, 3U);
}

TEST(SealedContainers, FixedHeaderIsCorrectedWithoutKeys) {
  const auto codec = sealed_codec();
  const auto sealed = seal_frames(*codec, kContents);
  for (std::size_t at = 0; at < 128; at += 3) {
    auto damaged = sealed.bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x21);
    ASSERT_TRUE(correct_fixed_header(std::as_writable_bytes(std::span(damaged))));
    EXPECT_EQ(damaged, sealed.bytes);
  }
}

TEST(SealedContainers, ManyKeysAreMadeInTurn) {
  // More containers than keys are kept.
  const auto codec = sealed_codec();
  std::vector<Sealed> all;
  for (std::uint32_t i = 0; i < 200; ++i) {
    all.push_back(seal_frames(*codec, {noise(100 + i)}, true, i));
  }
  for (int round = 0; round < 2; ++round) {
    for (const auto& sealed : all) EXPECT_EQ(open_frames(*codec, sealed.bytes), sealed.raw);
  }
}

}  // namespace
}  // namespace varve::format
