// SPDX-License-Identifier: Apache-2.0
// Tests which containers a distant source is told to read as a whole.
#include <gtest/gtest.h>

#include <vector>

#include "restore/header_announcer.h"
#include "restore/piece_reader.h"
#include "restore/read_announcer.h"
#include "support/fake_source.h"

namespace varve::restore {
namespace {

constexpr std::uint32_t kChunksOfContainer = 10;

ChunkId id_of(std::uint32_t ordinal) { return ChunkId::make(VersionNumber{1}, ordinal); }

using Numbers = std::vector<std::uint32_t>;

/// Fills a source whose reads wait long with five containers.
void fill(FakeSource& source) {
  source.is_distant = true;
  for (std::uint32_t i = 0; i < 5 * kChunksOfContainer; ++i) {
    source.place(id_of(i), Bytes(1000, static_cast<std::byte>(i)));
    if ((i + 1) % kChunksOfContainer == 0) source.end_container();
  }
}

TEST(DistantAnnouncements, TheWindowTellsContainersThatItNeedsMostOf) {
  FakeSource source;
  fill(source);
  LookAheadWindow window(64);
  for (std::uint32_t i = 0; i < 10; ++i) window.push(id_of(i));   // All of container 0.
  for (std::uint32_t i = 10; i < 15; ++i) window.push(id_of(i));  // Half of container 1.
  for (std::uint32_t i = 20; i < 24; ++i) window.push(id_of(i));  // Less of container 2.
  ReadAnnouncer announcer(&source, nullptr);
  announcer.announce(window, 0, 1000);
  EXPECT_EQ(source.announced_whole, (Numbers{0, 1}));
  EXPECT_EQ(source.announced, Numbers{2});
}

TEST(DistantAnnouncements, PiecesTellContainersBeforeTheyAreRead) {
  FakeSource source;
  fill(source);
  std::vector<StoredPiece> pieces;
  for (std::uint32_t container = 0; container < 5; ++container) {
    StoredPiece piece;
    piece.container = container;
    piece.first = id_of(container * kChunksOfContainer);
    piece.count = container == 3 ? 2 : kChunksOfContainer;
    piece.bytes = piece.count * 1000;
    pieces.push_back(piece);
  }
  base::Metrics registry;
  const ReadMetrics metrics(registry);
  std::uint64_t taken = 0;
  PieceReader(source, metrics)
      .read(pieces, [&](const StoredPiece&, std::uint64_t, std::size_t n, const std::byte* data) {
        if (taken == 0) {
          EXPECT_EQ(source.announced_whole, (Numbers{0, 1, 2, 4}));
          EXPECT_EQ(source.announced, Numbers{3});
          EXPECT_EQ(source.announced_data.size(), 1U) << "the slice of container 3";
        }
        EXPECT_NE(data, nullptr);
        taken += n;
        return true;
      });
  EXPECT_EQ(taken, 42'000U);
}

}  // namespace
}  // namespace varve::restore
