// SPDX-License-Identifier: Apache-2.0
#include "format/container.h"
#include "base/checksum.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "base/coding.h"
#include "support/format_samples.h"

namespace varve::format {
namespace {

using base::as_bytes;

std::string encoded(ContainerHeader header = sample_header()) {
  return encode_container_header(header);
}

ErrorCode code_of(const std::string& bytes) {
  const auto header = decode_container_header(as_bytes(bytes));
  return header ? ErrorCode::kInterrupted : header.error().code();
}

void put64(std::string& bytes, std::size_t at, std::uint64_t v) {
  base::store_le(reinterpret_cast<std::byte*>(bytes.data() + at), v);
}
void put32(std::string& bytes, std::size_t at, std::uint32_t v) {
  base::store_le(reinterpret_cast<std::byte*>(bytes.data() + at), v);
}

// Makes both checksums right again, as a forger of a header would.
void seal(std::string& bytes) {
  put64(bytes, 48, base::checksum64(as_bytes(std::string_view(bytes).substr(128))));
  put64(bytes, 120, base::checksum64(as_bytes(std::string_view(bytes).substr(0, 120))));
}

ErrorCode code_of_forged(const std::function<void(std::string&)>& change) {
  std::string bytes = encoded();
  change(bytes);
  seal(bytes);
  return code_of(bytes);
}

// Places of the sample's tables in its header.
constexpr std::size_t kFrames = 128;
constexpr std::size_t kIdRuns = kFrames + 2 * 24;
constexpr std::size_t kChunks = kIdRuns + 3 * 12;
constexpr std::size_t kPadding = kChunks + 5 * 35;

TEST(ContainerHeader, RoundTrips) {
  ContainerHeader header = sample_header();
  const std::string bytes = encode_container_header(header);
  const auto back = decode_container_header(as_bytes(bytes));
  ASSERT_TRUE(back.has_value()) << back.error().message();
  EXPECT_EQ(*back, header);
}

TEST(ContainerHeader, EncodingFillsInTheDerivedMembers) {
  ContainerHeader header = sample_header();
  const std::string bytes = encode_container_header(header);
  EXPECT_EQ(header.header_bytes, bytes.size());
  EXPECT_EQ(header.header_bytes, container_header_bytes(2, 5, 3));
  EXPECT_EQ(header.data_bytes, 68536U + 5000U);
  EXPECT_EQ(header.raw_bytes, 68536U + 10100U);
  EXPECT_EQ(header.stored_bytes(), 4096U + 18 * 4096U);
  EXPECT_EQ(header.frames[1].first_chunk, 2U);
  EXPECT_EQ(header.frames[1].offset, 68536U);
  EXPECT_EQ(header.chunks[1].frame_offset, 3000U);
  EXPECT_EQ(header.chunks[3].frame, 1U);
  EXPECT_EQ(header.chunks[4].frame_offset, 10000U);
}

TEST(ContainerHeader, MarksRoundTrip) {
  ContainerHeader header = sample_header();
  for (const auto& chunk : header.chunks) header.marks[chunk.id.birth()][0] = std::byte{9};
  ASSERT_GT(header.marks.size(), 1U);
  header.marks.begin()->second = kNoMark;  // A birth of an earlier Varve.
  for (const bool compact : {false, true}) {
    header.compact = compact;
    const std::string bytes = encode_container_header(header);
    const auto back = decode_container_header(as_bytes(bytes));
    ASSERT_TRUE(back.has_value()) << back.error().message();
    EXPECT_EQ(*back, header);
    EXPECT_EQ(bytes.size(), container_header_bytes(2, 5, 3, header.form(), header.marks.size()));
    EXPECT_EQ(*container_header_length(as_bytes(bytes)), bytes.size());
  }
}

TEST(ContainerHeader, MarksThatDoNotFitTheBirthsAreCorrupt) {
  ContainerHeader header = sample_header();
  header.compact = true;
  for (const auto& chunk : header.chunks) header.marks[chunk.id.birth()][0] = std::byte{9};
  const auto whole = encode_container_header(header);
  const auto code_with_marks = [&](std::size_t marks) {
    auto bytes = whole;
    bytes.resize(kPadding + marks * kBirthMarkBytes, '\1');
    put32(bytes, 32, static_cast<std::uint32_t>(bytes.size()));
    seal(bytes);
    return code_of(bytes);
  };
  const auto births = header.marks.size();
  EXPECT_EQ(code_with_marks(births), ErrorCode::kInterrupted) << "the right number is no error";
  for (const auto marks : {std::size_t{0}, births - 1, births + 1, std::size_t{100}}) {
    EXPECT_EQ(code_with_marks(marks), ErrorCode::kCorrupt) << marks;
  }
  auto zeros = whole;
  for (auto at = kPadding; at < zeros.size(); ++at) zeros[at] = '\0';
  seal(zeros);
  EXPECT_EQ(code_of(zeros), ErrorCode::kCorrupt) << "no birth has a mark";
}

TEST(ContainerHeader, WithoutChunksRoundTrips) {
  ContainerHeader header;
  const std::string bytes = encode_container_header(header);
  EXPECT_EQ(bytes.size(), kContainerAlignment);
  const auto back = decode_container_header(as_bytes(bytes));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(*back, header);
}

TEST(ContainerHeader, ManyScatteredChunksRoundTrip) {
  ContainerHeader header;
  for (std::uint32_t f = 0; f < 300; ++f) {
    FrameEntry frame;
    frame.chunk_count = 10;
    frame.raw_bytes = frame.stored_bytes = 10 * 1000;
    header.frames.push_back(frame);
  }
  // Descending, so that every chunk is a run of its own.
  for (std::uint32_t i = 0; i < 3000; ++i) header.chunks.push_back(chunk(ChunkId{9000 - i}, 1000));
  const std::string bytes = encode_container_header(header);
  EXPECT_EQ(bytes.size(), container_header_bytes(300, 3000, 3000));
  const auto back = decode_container_header(as_bytes(bytes));
  ASSERT_TRUE(back.has_value()) << back.error().message();
  EXPECT_EQ(*back, header);
}

TEST(ContainerHeader, BytesAfterItAreLeftAlone) {
  const std::string bytes = encoded();
  EXPECT_EQ(*container_header_length(as_bytes(bytes).first(128)), bytes.size());
  EXPECT_TRUE(decode_container_header(as_bytes(bytes + "data")).has_value());
}

TEST(ContainerHeader, EveryFlippedBitReturnsCorrupt) {
  std::string bytes = encoded();
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
      ASSERT_EQ(code_of(bytes), ErrorCode::kCorrupt) << "byte " << at << " bit " << bit;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
    }
  }
}

TEST(ContainerHeader, EveryTruncationReturnsCorrupt) {
  const std::string bytes = encoded();
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    ASSERT_EQ(code_of(bytes.substr(0, n)), ErrorCode::kCorrupt) << n;
  }
}

TEST(ContainerHeader, LengthNeedsTheHeaderOnly) {
  const std::string bytes = encoded();
  for (std::size_t n = 0; n < 128; ++n) {
    EXPECT_FALSE(container_header_length(as_bytes(bytes).first(n)).has_value());
  }
  EXPECT_TRUE(container_header_length(as_bytes(bytes).first(128)).has_value());
}

TEST(ContainerHeader, NewerFormatReturnsUnsupported) {
  EXPECT_EQ(code_of_forged([](auto& b) { b[4] = 2; }), ErrorCode::kUnsupported);
}

TEST(ContainerHeader, UnknownFeatureReturnsUnsupported) {
  EXPECT_EQ(code_of_forged([](auto& b) { b[8] = 16; }), ErrorCode::kUnsupported);
  EXPECT_EQ(code_of_forged([](auto& b) { b[11] = '\x80'; }), ErrorCode::kUnsupported);
}

TEST(ContainerHeader, ReservedBytesMustBeZero) {
  EXPECT_EQ(code_of_forged([](auto& b) { b[6] = 1; }), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of_forged([](auto& b) { b[56] = 1; }), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of_forged([](auto& b) { b[119] = 1; }), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of_forged([](auto& b) { b[kFrames + 13] = 1; }), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of_forged([](auto& b) { b[kPadding] = 1; }), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of_forged([](auto& b) { b[4095] = 1; }), ErrorCode::kCorrupt);
}

TEST(ContainerHeader, ForgedCountsReturnCorrupt) {
  for (const std::size_t field : {20, 24, 28, 32, 36, 40}) {
    for (const std::uint32_t value : {0U, 1U, 4U, 6U, 100000U, 0x7fffffffU, 0xffffffffU}) {
      EXPECT_EQ(code_of_forged([&](auto& b) { put32(b, field, value); }), ErrorCode::kCorrupt)
          << "field at " << field << " = " << value;
    }
  }
}

TEST(ContainerHeader, ForgedFrameReturnsCorrupt) {
  for (const std::size_t field : {0, 4, 8}) {
    for (const std::uint32_t value : {0U, 1U, 200000U, 0xffffffffU}) {
      EXPECT_EQ(code_of_forged([&](auto& b) { put32(b, kFrames + field, value); }),
                ErrorCode::kCorrupt)
          << "field at " << field << " = " << value;
    }
  }
  EXPECT_EQ(code_of_forged([](auto& b) { b[kFrames + 12] = 2; }), ErrorCode::kCorrupt);
  // A stored frame is as long as its raw bytes, a compressed one shorter.
  EXPECT_EQ(code_of_forged([](auto& b) { b[kFrames + 12] = 1; }), ErrorCode::kCorrupt);
}

TEST(ContainerHeader, ForgedIdRunReturnsCorrupt) {
  EXPECT_EQ(code_of_forged([](auto& b) { put32(b, kIdRuns + 8, 0); }), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of_forged([](auto& b) { put32(b, kIdRuns + 8, 0xffffffff); }),
            ErrorCode::kCorrupt);
  // The first run over the end of its birth.
  EXPECT_EQ(code_of_forged([](auto& b) { put32(b, kIdRuns, 0xffffffff); }), ErrorCode::kCorrupt);
}

TEST(ContainerHeader, IdThatStandsTwiceReturnsCorrupt) {
  // The third run, of one chunk, onto the second one's first.
  EXPECT_EQ(code_of_forged(
                [](auto& b) { put64(b, kIdRuns + 24, ChunkId::make(VersionNumber{6}, 0).value); }),
            ErrorCode::kCorrupt);
}

TEST(ContainerHeader, ChunkWithoutBytesReturnsCorrupt) {
  EXPECT_EQ(code_of_forged([](auto& b) { b.replace(kChunks + 32, 3, 3, '\0'); }),
            ErrorCode::kCorrupt);
}

TEST(ContainerHeader, ChunkOverItsFrameReturnsCorrupt) {
  EXPECT_EQ(code_of_forged([](auto& b) { b[kChunks + 34] = '\xff'; }), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of_forged([](auto& b) { ++b[kChunks + 32]; }), ErrorCode::kCorrupt);
}

TEST(ContainerHeader, ForgerWhoChangesNothingIsBelieved) {
  // Shows that the forged headers above are refused for what was changed.
  EXPECT_EQ(code_of_forged([](auto&) {}), ErrorCode::kInterrupted);
}

TEST(ContainerHeaderDeathTest, FrameThatItsChunksDoNotFillIsAProgrammersError) {
  ContainerHeader header = sample_header();
  header.chunks[0].raw_bytes = 1;
  EXPECT_DEATH(static_cast<void>(encode_container_header(header)), "place_chunks");
}

}  // namespace
}  // namespace varve::format
