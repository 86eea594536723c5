// SPDX-License-Identifier: Apache-2.0
// The index keeps to its memory budget, and its seals write in proportion to the new chunks.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "index/neighbour_index.h"
#include "io/posix_file_system.h"
#include "support/faulty_file_system.h"
#include "support/index_samples.h"
#include "support/temp_repository.h"

namespace varve::index {
namespace {

constexpr std::size_t kBudgetBytes = 4U << 20;
constexpr std::uint32_t kBase = 1'000'000;  // 36 MB in a table.
constexpr std::uint32_t kNewPerSeal = 500;
constexpr std::uint32_t kSeals = 60;
// An entry takes 34 bytes, and is written once per level: 256, 1024, 4096, 16384 entries.
constexpr std::uint64_t kBytesPerNewChunk = 220;
constexpr std::uint64_t kBlocksPerLookup = 3;

std::size_t memory() { return ::mallinfo2().uordblks + ::mallinfo2().hblkhd; }

/// Containers of 512 chunks.
class Containers final : public StoredFingerprints {
 public:
  bool around(ChunkId id, const Visit& visit) override {
    const std::uint32_t first = id.ordinal() / 512 * 512;
    for (std::uint32_t i = first; i < first + 512; ++i) {
      visit(random_fingerprint(content(id.birth(), i)), ChunkId::make(id.birth(), i));
    }
    return true;
  }
  static std::uint64_t content(VersionNumber birth, std::uint32_t ordinal) {
    return (static_cast<std::uint64_t>(birth) << 32) | ordinal;
  }
};

class IndexMemoryGate : public testing::Test {
 protected:
  IndexStorage storage() {
    return {{&files_, directory_.path(), SeriesId{1}, store::index_run_name},
            &containers_,
            kBudgetBytes};
  }
  std::unique_ptr<NeighbourIndex> index(std::uint32_t own, const std::vector<RunRef>& runs) {
    auto made = std::make_unique<NeighbourIndex>(live_, VersionNumber{own}, storage());
    made->open_runs(runs);
    return made;
  }
  void insert(NeighbourIndex& index, std::uint32_t own, std::uint32_t count) {
    const VersionNumber number{own};
    for (std::uint32_t i = 0; i < count; ++i) {
      index.insert(random_fingerprint(Containers::content(number, i)), ChunkId::make(number, i));
      if (i % 4096 == 0) peak_ = std::max(peak_, memory());
    }
    live_ = live_.unite(base::IdRuns::from({{ChunkId::make(number, 0), count}}));
  }

  const test::TempDirectory directory_;
  test::FaultyFileSystem files_{io::make_posix_file_system()};
  Containers containers_;
  base::IdRuns live_;
  std::size_t peak_ = 0;
};

TEST_F(IndexMemoryGate, MemoryAndWritesDoNotFollowTheSizeOfTheIndex) {
  const std::size_t before = memory();
  std::vector<RunRef> runs;
  {
    const auto first = index(1, {});
    insert(*first, 1, kBase);
    runs = test::must(first->save(live_));
  }
  EXPECT_LE(peak_ - before, kBudgetBytes) << "while the first version is written";

  const std::uint64_t written = files_.faults.bytes_written;
  for (std::uint32_t own = 2; own < 2 + kSeals; ++own) {
    const auto next = index(own, runs);
    insert(*next, own, kNewPerSeal);
    runs = test::must(next->save(live_));
  }
  EXPECT_LE((files_.faults.bytes_written - written) / (kSeals * kNewPerSeal), kBytesPerNewChunk);

  const std::uint64_t read = files_.faults.bytes_read;
  const auto last = index(1000, runs);
  EXPECT_LE(files_.faults.bytes_read - read, runs.size() * 8192U) << "an opening reads headers";
  peak_ = 0;
  constexpr std::uint32_t kLookups = 20000;
  for (std::uint32_t i = 0; i < kLookups; ++i) {  // Scattered, so that each may cost a read.
    const auto ordinal = static_cast<std::uint32_t>(std::uint64_t{i} * 7919 % kBase);
    const VersionNumber birth{1};
    if (i % 20 == 0) {
      ASSERT_EQ(last->find_one(random_fingerprint(Containers::content(birth, ordinal))),
                ChunkId::make(birth, ordinal));
    }
    ASSERT_EQ(last->find_one(random_fingerprint((std::uint64_t{9999} << 32) + i)), std::nullopt);
    if (i % 1000 == 0) peak_ = std::max(peak_, memory());
  }
  EXPECT_LE(peak_ - before, kBudgetBytes) << "while files are looked up";
  EXPECT_LE(last->blocks_read(), kLookups * kBlocksPerLookup);
}

}  // namespace
}  // namespace varve::index
