// SPDX-License-Identifier: Apache-2.0
// Tests reading in the order of the disk.
#include "restore/piece_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "support/fake_source.h"

namespace varve::restore {
namespace {

std::vector<StoredPiece> locate_all(World& world) {
  std::vector<StoredPiece> pieces;
  for (std::uint32_t i = 0; i < world.files.size(); ++i) {
    const auto located =
        locate_pieces(world.source, *world.files[i].recipe, 0, [&](const StoredPiece& piece) {
          pieces.push_back(piece);
          pieces.back().file = i;
          return true;
        });
    EXPECT_TRUE(located) << located.error().message();
  }
  std::ranges::sort(pieces, lies_before);
  return pieces;
}

/// The bytes read from a file. `taken` counts how often each byte was delivered.
struct Assembly {
  explicit Assembly(const World& world) {
    for (const World::File& file : world.files) {
      content.emplace_back(file.content.size());
      taken.emplace_back(file.content.size(), '\0');
    }
  }
  bool take(const StoredPiece& piece, std::uint64_t offset, std::size_t bytes,
            const std::byte* data) {
    EXPECT_LE(offset + bytes, content[piece.file].size());
    char* const times = taken[piece.file].data() + offset;
    for (std::size_t i = 0; i < bytes; ++i) ++(times[i]++ == 0 ? touched : repeated);
    if (data == nullptr) {
      unread += bytes;
    } else {
      std::memcpy(content[piece.file].data() + offset, data, bytes);
    }
    return true;
  }
  std::vector<Bytes> content;
  std::vector<std::string> taken;
  std::uint64_t touched = 0;   ///< Bytes delivered at least once.
  std::uint64_t repeated = 0;  ///< Deliveries of bytes that were delivered before.
  std::uint64_t unread = 0;
};

class PieceReaderTest : public ::testing::TestWithParam<Codec> {};

TEST_P(PieceReaderTest, ReadsEachContainerOnceInTheOrderOfTheDisk) {
  World world(11, GetParam());
  fill_random(world, 50);
  const auto pieces = locate_all(world);
  Assembly assembly(world);
  std::vector<FakeSource::Read> reads;
  world.source.recorded = &reads;
  base::Metrics registry;
  const ReadMetrics metrics(registry);
  PieceReader(world.source, metrics).read(pieces, [&](const auto&... what) {
    return assembly.take(what...);
  });
  std::uint64_t holes = 0;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < world.files.size(); ++i) {
    EXPECT_TRUE(test::same_bytes(assembly.content[i], world.files[i].content)) << "file " << i;
    bytes += world.files[i].content.size();
    for (const auto& run : world.files[i].recipe->runs) holes += run.is_hole() ? run.bytes : 0;
  }
  EXPECT_EQ(assembly.repeated, 0U);
  EXPECT_EQ(bytes - assembly.touched, holes);
  EXPECT_EQ(assembly.unread, 0U);
  ASSERT_GT(world.source.containers(), 2U);
  std::uint64_t place = 0;
  std::uint64_t end = 0;
  for (const FakeSource::Read& read : reads) {
    const std::uint64_t at = *world.source.place_of(ContainerNumber{read.container});
    ASSERT_GE(at, place) << "the header goes back";
    if (at > place) end = 0;
    place = at;
    ASSERT_GE(read.offset, end) << "something is read twice";
    ASSERT_LE(read.bytes, ReadCosts{}.request_bytes_max);
    end = read.offset + read.bytes;
  }
}

INSTANTIATE_TEST_SUITE_P(Codecs, PieceReaderTest, ::testing::Values(Codec::kNone, Codec::kZstd));

TEST(PieceReader, WhatIsDamagedIsTakenWithoutDataAndNothingElse) {
  World world(12);
  fill_random(world, 50);
  world.source.flip_byte(0, 3);
  world.source.damage_header(1);
  const auto pieces = locate_all(world);
  Assembly assembly(world);
  base::Metrics registry;
  const ReadMetrics metrics(registry);
  PieceReader(world.source, metrics).read(pieces, [&](const auto&... what) {
    return assembly.take(what...);
  });
  std::uint64_t in_frame = 0;
  std::uint64_t in_container = 0;
  const auto header = *world.source.header(ContainerNumber{0});
  for (const StoredPiece& piece : pieces) {
    if (piece.container == 1) in_container += piece.bytes;
    if (piece.container != 0) continue;
    for (std::uint32_t i = 0; i < piece.count; ++i) {
      const auto& chunk = header->chunks[piece.index + i];
      if (chunk.frame == 3) in_frame += chunk.raw_bytes;
    }
  }
  EXPECT_GT(in_frame, 0U);
  EXPECT_GT(in_container, 0U);
  EXPECT_EQ(assembly.unread, in_frame + in_container);
  EXPECT_EQ(assembly.repeated, 0U);
}

TEST(PieceReader, LocatingGoesOnWhereItStopped) {
  World world(13);
  fill_random(world, 60);
  for (const World::File& file : world.files) {
    std::vector<std::uint64_t> whole;
    ASSERT_TRUE(locate_pieces(world.source, *file.recipe, 0, [&](const StoredPiece& piece) {
      whole.push_back(piece.offset);
      return true;
    }));
    std::vector<std::uint64_t> parts;
    std::uint64_t next = 0;
    for (bool more = true; more;) {
      more = false;
      ASSERT_TRUE(locate_pieces(world.source, *file.recipe, next, [&](const StoredPiece& piece) {
        if (more) return false;
        more = true;
        parts.push_back(piece.offset);
        next = piece.offset + piece.bytes;
        return true;
      }));
    }
    EXPECT_EQ(parts, whole);
  }
}

TEST(PieceReader, StopsWhenItIsTold) {
  World world(14);
  fill_random(world, 20);
  const auto pieces = locate_all(world);
  int calls = 0;
  base::Metrics registry;
  const ReadMetrics metrics(registry);
  PieceReader(world.source, metrics).read(pieces, [&](const auto&...) { return ++calls < 5; });
  EXPECT_EQ(calls, 5);
}

}  // namespace
}  // namespace varve::restore
