// SPDX-License-Identifier: Apache-2.0
// The answers of the stream index, beyond the contract of every index of the pool.
#include "index/stream_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "index/exact_pool_index.h"
#include "support/pool_containers.h"
#include "support/sealed_memory.h"
#include "support/temp_repository.h"

namespace varve::index {
namespace {

using test::must;

constexpr StreamNumber kFirst{1};
constexpr StreamNumber kSecond{2};
constexpr SeriesId kMails{5};
constexpr SeriesId kImages{6};
// 4096 entries, of which an opening fills 1024.
constexpr std::size_t kStreamMemoryBytes = 256U << 10;

class StreamIndexTest : public testing::Test {
 protected:
  void SetUp() override { reopen(); }
  void reopen(bool applies_threshold = true) {
    index_.reset();
    StreamOptions options;
    options.memory_bytes = kStreamMemoryBytes;
    options.applies_threshold = applies_threshold;
    index_ = StreamIndex::open(pool_index_folder(*files_, "/pool"), containers_, options);
  }
  void place(std::uint32_t ordinal, std::uint64_t content, std::uint32_t count,
             StreamNumber stream = kFirst) {
    std::vector<PlacedChunk> chunks;
    for (std::uint32_t i = 0; i < count; ++i) {
      containers_.store(pool_id(1, ordinal + i), content + i);
      chunks.push_back({random_fingerprint(content + i), pool_id(1, ordinal + i)});
    }
    index_->placed(stream, chunks);
  }
  [[nodiscard]] std::vector<bool> look(const std::vector<std::uint64_t>& contents,
                                       StreamNumber stream = kFirst) {
    std::vector<Fingerprint> fingerprints;
    for (const auto content : contents) fingerprints.push_back(random_fingerprint(content));
    std::vector<PoolHit> hits(contents.size());
    index_->lookup(stream, fingerprints, hits);
    std::vector<bool> found;
    for (std::size_t i = 0; i < hits.size(); ++i) {
      found.push_back(hits[i].id.has_value());
      if (hits[i].id) {
        EXPECT_EQ(containers_.content_of(*hits[i].id), contents[i]);
      }
    }
    return found;
  }
  // Returns how many of consecutive contents are found, asked in one batch.
  [[nodiscard]] std::size_t found(std::uint64_t first, std::uint64_t count,
                                  StreamNumber stream = kFirst) {
    std::vector<std::uint64_t> contents;
    for (std::uint64_t i = 0; i < count; ++i) contents.push_back(first + i);
    const auto hits = look(contents, stream);
    return static_cast<std::size_t>(std::ranges::count(hits, true));
  }
  void save() { must(index_->save(containers_.live())); }
  [[nodiscard]] const PoolStream state_of(SeriesId series) {
    for (const auto& one : index_->streams()) {
      if (one.series == series) return one;
    }
    ADD_FAILURE() << "no such stream";
    return {};
  }

  const std::unique_ptr<io::FileSystem> files_ = test::memory_files();
  PoolContainers containers_;
  std::unique_ptr<StreamIndex> index_;
};

TEST_F(StreamIndexTest, FindsWhatTheCacheHolds) {
  place(0, 100, 1000);
  EXPECT_EQ(found(100, 1000), 1000U);
  EXPECT_EQ(found(100, 1000, kSecond), 1000U) << "any stream may refer to it";
  EXPECT_EQ(found(5000, 100), 0U);
}

TEST_F(StreamIndexTest, ForgetsWhatWasUsedLongAgo) {
  place(0, 0, 9000);
  EXPECT_EQ(found(9000 - 4000, 4000), 4000U) << "the cache has 4096 entries";
  EXPECT_EQ(found(0, 4000), 0U);
}

TEST_F(StreamIndexTest, OpeningFillsTheCacheWithTheNewestChunks) {
  place(0, 0, 2500);
  save();
  reopen();
  EXPECT_EQ(found(2500 - 1024, 1024), 1024U);
  reopen();
  EXPECT_EQ(found(0, 1000), 0U);
}

TEST_F(StreamIndexTest, ChunksBesideAFoundOneAreFound) {
  place(0, 0, 64);
  place(64, 1000, 8000);
  containers_.store(pool_id(1, 9000), 0);
  const PlacedChunk again{random_fingerprint(0), pool_id(1, 0)};
  index_->placed(kFirst, {&again, 1});
  EXPECT_EQ(found(0, 64), 64U) << "the table of the container names them";
}

TEST_F(StreamIndexTest, ShortRunsWithinABatchAreAnsweredAsUnknown) {
  place(0, 100, 200);
  std::vector<std::uint64_t> contents;
  for (std::uint64_t i = 0; i < 15; ++i) contents.push_back(100 + i);  // One less than T.
  contents.push_back(7777);
  for (std::uint64_t i = 0; i < 16; ++i) contents.push_back(150 + i);
  contents.push_back(7778);
  std::vector<bool> wanted(15, false);
  wanted.push_back(false);
  wanted.insert(wanted.end(), 16, true);
  wanted.push_back(false);
  EXPECT_EQ(look(contents), wanted);
  reopen(false);
  place(0, 100, 200);
  std::fill_n(wanted.begin(), 15, true);
  EXPECT_EQ(look(contents), wanted);
}

TEST_F(StreamIndexTest, RunMayGoOnInTheNextBatch) {
  place(0, 100, 200);
  EXPECT_EQ(look({100, 101}), (std::vector<bool>{true, true})) << "the run may go on";
  std::vector<std::uint64_t> rest;
  for (std::uint64_t i = 2; i < 16; ++i) rest.push_back(100 + i);
  rest.push_back(7777);
  auto wanted = std::vector<bool>(14, true);
  wanted.push_back(false);
  EXPECT_EQ(look(rest), wanted) << "16 with those before";
  EXPECT_EQ(look({100, 101}), (std::vector<bool>{true, true}));
  EXPECT_EQ(look({102, 7777}), (std::vector<bool>{false, false})) << "3 with those before";
}

TEST_F(StreamIndexTest, RepeatsOfOneChunkAreARun) {
  place(0, 100, 200);
  std::vector<std::uint64_t> contents(20, 150);
  contents.push_back(7777);
  const auto hits = look(contents);
  EXPECT_EQ(std::ranges::count(hits, true), 20);
}

TEST_F(StreamIndexTest, ThresholdFollowsTheRunsOfTheStream) {
  index_->open_stream(kFirst, kMails);
  EXPECT_EQ(state_of(kMails).run_threshold, 16U);
  place(0, 0, 2000);
  for (std::uint32_t round = 0; round < 12; ++round) {
    std::vector<std::uint64_t> contents;
    for (std::uint64_t i = 0; i < 400; ++i) {  // Runs of 4, between new chunks.
      contents.push_back(i % 5 == 4 ? 100'000 + round * 1000 + i : i / 5 * 9 + i % 5);
    }
    static_cast<void>(look(contents));
  }
  EXPECT_GT(state_of(kMails).run_threshold, 1U);
  EXPECT_LT(state_of(kMails).run_threshold, 10U);
  index_->note_reads(kMails, std::vector<std::uint64_t>(200'000, 60));
  for (int round = 0; round < 12; ++round) static_cast<void>(found(0, 400));
  EXPECT_GT(state_of(kMails).run_threshold, 30U);
}

TEST_F(StreamIndexTest, SeriesFindsItsEntriesAndEstimatesAgain) {
  index_->open_stream(kFirst, kMails);
  place(0, 0, 1000);
  for (int round = 0; round < 5; ++round) static_cast<void>(found(0, 1000));
  const auto before = state_of(kMails);
  EXPECT_TRUE(before.is_open);
  EXPECT_EQ(before.entries, 1000U);
  EXPECT_GT(before.locality, 0);
  index_->close_stream(kFirst);
  EXPECT_FALSE(state_of(kMails).is_open);
  index_->open_stream(StreamNumber{3}, kImages);
  EXPECT_EQ(state_of(kMails).entries, 1000U) << "another series does not take the slot";
  index_->open_stream(kSecond, kMails);
  EXPECT_TRUE(state_of(kMails).is_open);
  EXPECT_EQ(index_->streams().size(), 3U) << "the slot of no series, and two series";
  EXPECT_EQ(found(0, 1000, kSecond), 1000U);
}

TEST_F(StreamIndexTest, RunsHaveEveryChunkForTheExactIndex) {
  place(0, 0, 9000);
  save();
  EXPECT_EQ(index_->size(), 9000U);
  index_.reset();
  const auto exact = ExactPoolIndex::open(pool_index_folder(*files_, "/pool"), containers_);
  EXPECT_EQ(exact->missing(containers_.live()), base::IdRuns());
  for (std::uint64_t content = 0; content < 9000; content += 89) {
    const auto fingerprint = random_fingerprint(content);
    PoolHit hit;
    exact->lookup(kFirst, {&fingerprint, 1}, {&hit, 1});
    ASSERT_EQ(hit.id, pool_id(1, static_cast<std::uint32_t>(content)));
  }
}

TEST_F(StreamIndexTest, LookupsReadNoRuns) {
  place(0, 0, 9000);
  save();
  reopen();
  index_.reset();
  StreamOptions options;
  options.memory_bytes = kStreamMemoryBytes;
  const auto index = StreamIndex::open(pool_index_folder(*files_, "/pool"), containers_, options);
  // Without the files, the newest chunks are still found.
  for (const auto& name : must(files_->list("/pool"))) must(files_->remove("/pool/" + name));
  const auto fingerprint = random_fingerprint(8999);
  PoolHit hit;
  index->lookup(kFirst, {&fingerprint, 1}, {&hit, 1});
  EXPECT_EQ(hit.id, pool_id(1, 8999));
}

}  // namespace
}  // namespace varve::index
