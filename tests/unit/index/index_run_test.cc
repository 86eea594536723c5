// SPDX-License-Identifier: Apache-2.0
// The files of the index: runs and snapshots, and damage to them.
#include "index/index_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "index/run_set.h"
#include "index/run_writer.h"
#include "index/tag_table.h"
#include "support/index_samples.h"
#include "support/sealed_memory.h"

namespace varve::index {
namespace {

constexpr SeriesId kSeries{5};
constexpr VersionNumber kVersion{3};
constexpr std::size_t kCacheBytes = 1U << 20;

ChunkId chunk(std::uint64_t n) { return ChunkId::make(kVersion, static_cast<std::uint32_t>(n)); }

base::IdRuns first_chunks(std::uint64_t count) {
  if (count == 0) return {};
  return base::IdRuns::from({{chunk(0), static_cast<std::uint32_t>(count)}});
}

class IndexRunTest : public testing::Test {
 protected:
  // Returns entries in order. `skewed` tags share their first bytes, so all have one bucket.
  static std::vector<Entry> entries(std::uint64_t count, bool skewed = false) {
    TagTable table;
    for (std::uint64_t i = 0; i < count; ++i) {
      auto fingerprint = random_fingerprint(i);
      if (skewed) std::fill_n(fingerprint.begin(), 8, std::byte{0xff});
      table.put(Entry(tag_of(fingerprint), chunk(i)));
    }
    return table.take_sorted();
  }

  std::unique_ptr<IndexRun> write(const std::vector<Entry>& all, std::uint64_t expected) {
    auto writer = std::move(*RunWriter::create(folder_, 1, expected));
    for (const Entry& entry : all) EXPECT_TRUE(writer->add(entry));
    auto run = writer->finish(first_chunks(all.size()));
    EXPECT_TRUE(run) << run.error().message();
    return std::move(*run);
  }

  std::string bytes() { return *files_->read_file(folder_.path_of(1), 1U << 26); }
  void replace(const std::string& content) {
    const auto file = std::move(*files_->open(folder_.path_of(1), io::OpenMode::kReadWrite));
    ASSERT_TRUE(file->truncate(0));
    ASSERT_TRUE(file->write_at(0, base::as_bytes(content)));
  }

  const std::unique_ptr<io::FileSystem> files_ = test::memory_files();
  const RunFolder folder_ = test_folder(*files_, kSeries);
};

TEST_F(IndexRunTest, FindsAllEntriesAndNothingElse) {
  for (const std::uint64_t count : {0U, 1U, 119U, 120U, 121U, 146U, 147U, 3360U, 3361U, 50000U}) {
    for (const bool skewed : {false, true}) {
      if (skewed && count > 5000) continue;
      const auto all = entries(count, skewed);
      const auto run = write(all, count);
      ASSERT_TRUE(run->verify());
      EXPECT_EQ(run->header().entries, count);
      EXPECT_EQ(run->covered(), first_chunks(count));
      BlockCache cache(kCacheBytes);
      for (const Entry& entry : all) {
        const auto found = run->find(entry.tag, cache);
        ASSERT_TRUE(found) << found.error().message();
        ASSERT_EQ(*found, entry.id()) << count;
      }
      for (const Entry& other : entries(count + 500, skewed)) {
        if (other.id().ordinal() < count) continue;
        ASSERT_EQ(*run->find(other.tag, cache), std::nullopt);
      }
      RunScanner scanner(*run);
      for (const Entry& entry : all) ASSERT_EQ(scanner.next()->tag, entry.tag);
      ASSERT_TRUE(scanner.next()->is_empty());
    }
  }
}

TEST_F(IndexRunTest, FewerOrMoreEntriesThanExpectedAreFound) {
  const auto all = entries(1000);
  for (const std::uint64_t expected : {1U, 300U, 100000U}) {
    const auto run = write(all, expected);
    BlockCache cache(kCacheBytes);
    for (const Entry& entry : all) ASSERT_EQ(*run->find(entry.tag, cache), entry.id());
  }
}

TEST_F(IndexRunTest, LookupReadsTwoBlocksAndAMissOne) {
  const auto all = entries(50000);
  const auto run = write(all, all.size());
  BlockCache cache(0);
  std::uint64_t before = cache.blocks_read();
  for (std::size_t i = 0; i < all.size(); i += 50) {
    static_cast<void>(run->find(all[i].tag, cache));
  }
  EXPECT_LE(cache.blocks_read() - before, 2 * 1000 + 20U);
  before = cache.blocks_read();
  for (std::uint64_t i = 0; i < 1000; ++i) {
    static_cast<void>(run->find(tag_of(random_fingerprint(1000000 + i)), cache));
  }
  EXPECT_LE(cache.blocks_read() - before, 1000 + 40U);
}

TEST_F(IndexRunTest, EachFlippedByteAndEachTruncationIsFound) {
  const auto all = entries(130);
  const auto ref = write(all, all.size())->ref();
  const auto good = bytes();
  const auto is_sound = [&] {
    const auto run = IndexRun::open(folder_, ref);
    return run && (*run)->verify();
  };
  ASSERT_TRUE(is_sound());
  for (std::size_t i = 0; i < good.size(); ++i) {
    auto bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    replace(bad);
    ASSERT_FALSE(is_sound()) << "byte " << i;
    // A lookup may fail, but it never gives a wrong chunk.
    const auto run = IndexRun::open(folder_, ref);
    if (!run || i % 37 != 0) continue;
    BlockCache cache(kCacheBytes);
    for (const Entry& entry : all) {
      const auto found = (*run)->find(entry.tag, cache);
      ASSERT_TRUE(!found || *found == entry.id());
    }
  }
  for (std::size_t size = 0; size < good.size(); size += 61) {
    replace(good.substr(0, size));
    ASSERT_FALSE(is_sound()) << size << " bytes";
  }
  replace(good + "x");
  ASSERT_FALSE(is_sound());
}

TEST_F(IndexRunTest, BlockInAnotherPlaceIsDamage) {
  const auto all = entries(400);
  const auto ref = write(all, all.size())->ref();
  auto moved = bytes();
  std::swap_ranges(moved.begin() + kBlockBytes, moved.begin() + 2 * kBlockBytes,
                   moved.begin() + 2 * kBlockBytes);
  replace(moved);
  const auto run = IndexRun::open(folder_, ref);
  ASSERT_TRUE(run);
  EXPECT_EQ((*run)->verify().error().code(), ErrorCode::kCorrupt);
}

TEST_F(IndexRunTest, AnotherRunThanExpectedIsRefused) {
  auto ref = write(entries(10), 10)->ref();
  ASSERT_TRUE(IndexRun::open(folder_, ref));
  ++ref.header_checksum;
  EXPECT_FALSE(IndexRun::open(folder_, ref));
  EXPECT_FALSE(IndexRun::open(test_folder(*files_, SeriesId{6}), write(entries(10), 10)->ref()));
}

TEST(IndexSnapshotTest, RoundTripAndEachFlippedByte) {
  const std::vector<RunRef> runs{{1, 100, 0x1122334455667788}, {7, 3, 42}};
  const auto good = encode_snapshot(kSeries, kVersion, runs);
  EXPECT_EQ(*decode_snapshot(good, kSeries, kVersion), runs);
  EXPECT_TRUE(decode_snapshot(encode_snapshot(kSeries, kVersion, {}), kSeries, kVersion)->empty());
  for (std::size_t i = 0; i < good.size(); ++i) {
    auto bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    ASSERT_FALSE(decode_snapshot(bad, kSeries, kVersion)) << "byte " << i;
    ASSERT_FALSE(decode_snapshot(good.substr(0, i), kSeries, kVersion)) << i << " bytes";
  }
  EXPECT_FALSE(decode_snapshot(good + "x", kSeries, kVersion));
  EXPECT_FALSE(decode_snapshot(good, SeriesId{6}, kVersion));
  EXPECT_FALSE(decode_snapshot(good, kSeries, VersionNumber{4}));
}

TEST_F(IndexRunTest, SnapshotOfLayoutOneBecomesARun) {
  const auto all = entries(1000);
  const auto good = old_snapshot(kSeries, kVersion, first_chunks(1000), all);
  EXPECT_EQ(decode_snapshot(good, kSeries, kVersion).error().code(), ErrorCode::kUnsupported);
  replace(good);
  {
    const auto file = std::move(*files_->open(folder_.path_of(1), io::OpenMode::kRead));
    RunSet runs(RunFolder{files_.get(), "/s", kSeries,
                          [](std::uint32_t n) { return "r" + std::to_string(n); }},
                kCacheBytes);
    ASSERT_TRUE(runs.import(*file, kVersion));
    EXPECT_EQ(runs.entries(), 1000U);
    EXPECT_EQ(runs.covered(), first_chunks(1000));
    const auto take = [](ChunkId, bool) { return RunSet::Verdict::kTake; };
    for (const Entry& entry : all) ASSERT_EQ(runs.find(entry.tag, take), entry.id());
  }
  const auto outcome = [&](const std::string& content) {
    replace(content);
    const auto file = std::move(*files_->open(folder_.path_of(1), io::OpenMode::kRead));
    const auto ids = scan_snapshot(*file, kSeries, kVersion,
                                   [](const Entry&, std::uint64_t) -> Result<void> { return {}; });
    return ids.has_value();
  };
  const auto small = old_snapshot(kSeries, kVersion, first_chunks(10), entries(10));
  ASSERT_TRUE(outcome(small));
  for (std::size_t i = 0; i < small.size(); ++i) {
    auto bad = small;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    ASSERT_FALSE(outcome(bad)) << "byte " << i;
    ASSERT_FALSE(outcome(small.substr(0, i))) << i << " bytes";
  }
  EXPECT_FALSE(outcome(small + "x"));
  EXPECT_FALSE(outcome(old_snapshot(kSeries, VersionNumber{9}, first_chunks(10), entries(10))));
  EXPECT_FALSE(outcome(old_snapshot(kSeries, kVersion, first_chunks(2), entries(3))))
      << "more entries than chunks";
}

}  // namespace
}  // namespace varve::index
