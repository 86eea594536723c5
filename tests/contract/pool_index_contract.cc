// SPDX-License-Identifier: Apache-2.0
// The promises of every PoolIndex, against a map from contents. A lossy index may miss what it was
// told; an exact one misses nothing, except after damage until the lost chunks are added again.
#include "index/pool_index.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "contract/pool_index_subject.h"
#include "io/posix_file_system.h"
#include "support/pool_containers.h"
#include "support/sanitized.h"
#include "support/sealed_memory.h"
#include "support/temp_repository.h"

namespace varve::index {
namespace {

constexpr StreamNumber kOne{1};
constexpr StreamNumber kTwo{2};
constexpr SeriesId kSeries{7};
// Makes a table of the exact index spill after 768 entries.
constexpr std::size_t kMemoryBytes = 256U << 10;

class PoolIndexContract : public testing::TestWithParam<PoolIndexSubject> {
 protected:
  void SetUp() override {
    base::set_log_level(base::LogLevel::kError);  // Damage is reported as warnings.
    reopen();
  }
  void TearDown() override { base::set_log_level(base::LogLevel::kWarning); }

  void reopen() {
    index_.reset();
    index_ = GetParam().open(pool_index_folder(*files_, "/pool"), containers_, kMemoryBytes);
  }
  [[nodiscard]] bool is_exact() const { return !GetParam().is_lossy; }

  [[nodiscard]] PoolHit look(std::uint64_t content, StreamNumber stream = kOne) {
    const Fingerprint fingerprint = random_fingerprint(content);
    PoolHit hit{pool_id(999, 9), SeriesId{99}};  // Old content must not shine through.
    index_->lookup(stream, {&fingerprint, 1}, {&hit, 1});
    return hit;
  }
  // Expects this chunk; of a lossy index, any chunk with the content, or a miss.
  void expect_found(std::uint64_t content, ChunkId id, StreamNumber stream = kOne) {
    const PoolHit hit = look(content, stream);
    if (is_exact()) {
      ASSERT_EQ(hit, (PoolHit{id, {}})) << "content " << content;
    } else if (hit.id) {
      ASSERT_EQ(containers_.content_of(*hit.id), content);
    }
  }
  void expect_nothing(std::uint64_t content) { ASSERT_EQ(look(content), PoolHit()); }
  void expect_marker(std::uint64_t content, SeriesId series) {
    const PoolHit hit = look(content);
    ASSERT_FALSE(hit.id);
    if (is_exact() || hit.elsewhere) {
      ASSERT_EQ(hit.elsewhere, series);
    }
  }

  void place(ChunkId first, std::uint64_t content, std::uint32_t count,
             StreamNumber stream = kOne) {
    std::vector<PlacedChunk> chunks;
    for (std::uint32_t i = 0; i < count; ++i) {
      containers_.store(first.plus(i), content + i);
      chunks.push_back({random_fingerprint(content + i), first.plus(i)});
    }
    index_->placed(stream, chunks);
  }
  void mark(std::uint64_t content, SeriesId series) {
    const Fingerprint fingerprint = random_fingerprint(content);
    index_->stored_in_series(kOne, series, {&fingerprint, 1});
  }
  void save() { ASSERT_TRUE(index_->save(containers_.live())); }

  const std::unique_ptr<io::FileSystem> files_ = test::memory_files();
  PoolContainers containers_;
  std::unique_ptr<PoolIndex> index_;
};

TEST_P(PoolIndexContract, EmptyIndexKnowsNothing) {
  expect_nothing(1);
  index_->lookup(kOne, {}, {});
  EXPECT_EQ(index_->size(), 0U);
  EXPECT_EQ(index_->covered(), base::IdRuns());
  index_->close_stream(kOne);
  save();
  reopen();
  expect_nothing(1);
}

TEST_P(PoolIndexContract, BatchAnswersInItsOwnOrderForEveryStream) {
  place(pool_id(1, 0), 100, 50);
  mark(500, kSeries);
  const std::vector<Fingerprint> batch{random_fingerprint(149), random_fingerprint(3),
                                       random_fingerprint(100), random_fingerprint(149),
                                       random_fingerprint(500)};
  const std::vector<PoolHit> wanted{
      {pool_id(1, 49), {}}, {}, {pool_id(1, 0), {}}, {pool_id(1, 49), {}}, {std::nullopt, kSeries}};
  for (const StreamNumber stream : {kOne, kTwo}) {
    std::vector<PoolHit> hits(batch.size(), {pool_id(9, 9), kSeries});
    index_->lookup(stream, batch, hits);
    if (is_exact()) {
      EXPECT_EQ(hits, wanted);
    }
    EXPECT_EQ(hits[1], PoolHit());
  }
}

TEST_P(PoolIndexContract, ChunkStoredAgainIsFoundUnderItsNewId) {
  place(pool_id(5, 0), 100, 64);
  save();
  for (std::uint32_t round = 0; round < 2; ++round) {
    // An older birth: a stream that began earlier may store the content later.
    const PlacedChunk again{random_fingerprint(110), pool_id(2, round)};
    containers_.store(again.id, 110);
    expect_found(110, round == 0 ? pool_id(5, 10) : pool_id(2, 0));
    index_->replace(kTwo, {&again, 1});
    expect_found(110, again.id);
    expect_found(111, pool_id(5, 11), kTwo);  // Brings the replaced chunk's container to memory.
    expect_found(110, again.id);
    place(pool_id(6, round * 1000), 10000 + round * 1000, 1000);
    expect_found(109, pool_id(5, 9));
    expect_found(110, again.id);
    save();
    if (round == 1) reopen();
    expect_found(109, pool_id(5, 9));
    expect_found(110, again.id);
  }
}

TEST_P(PoolIndexContract, ChunkOfThePoolBeatsAMarker) {
  mark(1, kSeries);
  mark(2, kSeries);
  place(pool_id(1, 0), 1, 1);
  mark(1, SeriesId{8});
  for (int round = 0; round < 12; ++round) {  // Enough runs for merges.
    expect_found(1, pool_id(1, 0));
    expect_marker(2, round == 0 ? kSeries : SeriesId{8});
    save();
    if (round % 3 == 2) reopen();
    mark(1, SeriesId{8});
    mark(2, SeriesId{8});
    mark(1000 + static_cast<std::uint64_t>(round), SeriesId{9});
  }
  for (std::uint64_t round = 0; round < 12; ++round) expect_marker(1000 + round, SeriesId{9});
  place(pool_id(1, 1), 2, 1);
  expect_found(2, pool_id(1, 1));
}

TEST_P(PoolIndexContract, ForgottenChunksAreNotFound) {
  place(pool_id(1, 0), 0, 1000);
  save();
  place(pool_id(2, 0), 1000, 100);
  expect_found(70, pool_id(1, 70));
  expect_found(1010, pool_id(2, 10));
  const auto gone = base::IdRuns::from({{pool_id(1, 64), 64}, {pool_id(2, 0), 64}});
  // The index alone refuses them: their containers can still be read.
  index_->forget(gone);
  for (const bool is_saved : {false, true}) {
    if (is_saved) save();
    for (std::uint64_t content = 64; content < 128; ++content) expect_nothing(content);
    for (std::uint64_t content = 1000; content < 1064; ++content) expect_nothing(content);
    expect_found(63, pool_id(1, 63));
    expect_found(1064, pool_id(2, 64));
  }
  containers_.free(gone);
  save();
  reopen();
  expect_nothing(70);
  expect_nothing(1010);
  place(pool_id(3, 0), 70, 1);
  expect_found(70, pool_id(3, 0));
}

TEST_P(PoolIndexContract, FreedChunksAreRefusedWithoutBeingForgotten) {
  place(pool_id(1, 0), 0, 1000);
  save();
  place(pool_id(2, 0), 1000, 64);
  const auto gone = base::IdRuns::from({{pool_id(1, 64), 64}, {pool_id(2, 0), 64}});
  containers_.free(gone);
  reopen();
  expect_nothing(70);
  expect_nothing(1010);
  expect_found(63, pool_id(1, 63));
  EXPECT_EQ(index_->missing(containers_.live()), base::IdRuns()) << "a freed chunk is no damage";
}

TEST_P(PoolIndexContract, BirthThatComesAgainWithOtherContentIsRefused) {
  place(pool_id(1, 0), 0, 64);
  save();
  containers_.free(base::IdRuns::from({{pool_id(1, 0), 64}}));
  for (std::uint32_t i = 0; i < 64; ++i) containers_.store(pool_id(1, i), 5000 + i);
  reopen();
  for (std::uint64_t content = 0; content < 64; ++content) expect_nothing(content);
  index_->add_missing(index_->missing(containers_.live()));
  for (std::uint32_t i = 0; i < 64; ++i) expect_found(5000 + i, pool_id(1, i));
  expect_nothing(5);
  // The same while the index is open.
  index_->forget(base::IdRuns::from({{pool_id(1, 0), 64}}));
  place(pool_id(1, 0), 6000, 64);
  expect_found(6003, pool_id(1, 3));
  expect_nothing(5003);
  expect_nothing(3);
}

TEST_P(PoolIndexContract, SaveKeepsChunksThatCameAfterItsCallerReadTheCatalog) {
  place(pool_id(1, 0), 0, 100);
  const auto live = containers_.live();
  place(pool_id(2, 0), 1000, 2000);
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(index_->save(live));
    place(pool_id(3 + static_cast<std::uint32_t>(i), 0), 10000 + 1000 * i, 300);
  }
  for (std::uint32_t i = 0; i < 2000; i += 77) expect_found(1000 + i, pool_id(2, i));
  reopen();
  for (std::uint32_t i = 0; i < 2000; i += 77) expect_found(1000 + i, pool_id(2, i));
}

TEST_P(PoolIndexContract, MissingChunksAreAddedFromTheirContainers) {
  place(pool_id(1, 0), 0, 2000);
  save();
  place(pool_id(2, 0), 5000, 2000);
  place(pool_id(3, 5), 17, 1);
  EXPECT_EQ(index_->missing(containers_.live()), base::IdRuns());
  reopen();  // As after a crash.
  if (is_exact()) {
    EXPECT_EQ(index_->missing(containers_.live()).size(), 2001U);
  }
  index_->add_missing(index_->missing(containers_.live()));
  EXPECT_EQ(index_->missing(containers_.live()), base::IdRuns());
  for (std::uint32_t i = 0; i < 2000; i += 7) expect_found(5000 + i, pool_id(2, i));
  expect_found(17, pool_id(3, 5));
  // Chunks that cannot be read stay missing.
  const auto unreadable = base::IdRuns::from({{pool_id(4, 0), 10}});
  index_->add_missing(unreadable);
  EXPECT_EQ(index_->missing(unreadable), unreadable);
}

TEST_P(PoolIndexContract, TwoStreamsAtOnceFindWhatTheyPlaced) {
  const std::uint32_t rounds = test::kThreadsWatched ? 20 : 40;
  place(pool_id(1, 0), 0, 3000);
  save();
  std::atomic<int> running = 2;
  const auto stream = [&](std::uint32_t number) {
    const StreamNumber self{number};
    const std::uint64_t base = 100000 * number;
    for (std::uint32_t round = 0; round < rounds; ++round) {
      const std::uint32_t first = round * 100;
      std::vector<PlacedChunk> chunks;
      std::vector<Fingerprint> asked;
      for (std::uint32_t i = first; i < first + 100; ++i) {
        containers_.store(pool_id(10 + number, i), base + i);
        chunks.push_back({random_fingerprint(base + i), pool_id(10 + number, i)});
        asked.push_back(chunks.back().fingerprint);
      }
      for (std::uint32_t i = 0; i < 100; ++i) asked.push_back(random_fingerprint(first % 2900 + i));
      index_->placed(self, chunks);
      std::vector<PoolHit> hits(asked.size());
      index_->lookup(self, asked, hits);
      for (std::uint32_t i = 0; i < 200; ++i) {
        const ChunkId id =
            i < 100 ? pool_id(10 + number, first + i) : pool_id(1, first % 2900 + i - 100);
        if (is_exact() || hits[i].id) {
          ASSERT_EQ(hits[i].id, id) << number << " " << round;
        }
      }
    }
    index_->close_stream(self);
    --running;
  };
  std::thread one(stream, 1);
  std::thread two(stream, 2);
  for (std::uint32_t i = 0; running != 0; ++i) {  // Deletions and seals meanwhile.
    const std::uint32_t first = 3000 + i * 64;
    place(pool_id(1, first), 50'000'000 + first, 64);
    const auto gone = base::IdRuns::from({{pool_id(1, first), 64}});
    containers_.free(gone);
    index_->forget(gone);
    save();
    static_cast<void>(index_->memory_bytes() + index_->covered().size());
    expect_nothing(50'000'000 + first);
  }
  one.join();
  two.join();
  reopen();
  index_->add_missing(index_->missing(containers_.live()));
  for (std::uint32_t i = 0; i < rounds * 100; i += 13) expect_found(100000 + i, pool_id(11, i));
}

TEST_P(PoolIndexContract, MemoryStaysInTheBudgetAndIsTold) {
  if (test::kSanitized) GTEST_SKIP() << "the allocator is another one";
  constexpr std::size_t kBudget = 4U << 20;
  constexpr std::uint32_t kChunks = 1'000'000;
  const auto heap = [] { return ::mallinfo2().uordblks + ::mallinfo2().hblkhd; };
  const test::TempDirectory directory;
  const auto files = io::make_posix_file_system();
  index_.reset();
  std::size_t peak = 0;
  const std::size_t before = heap();
  index_ = GetParam().open(pool_index_folder(*files, directory.path()), containers_, kBudget);
  const auto expect_told = [&] {
    const auto used = static_cast<double>(heap() - before);
    EXPECT_NEAR(static_cast<double>(index_->memory_bytes()), used, used / 10 + 65536);
  };
  std::vector<PlacedChunk> chunks(500);
  for (std::uint32_t i = 0; i < kChunks; i += 500) {
    for (std::uint32_t j = 0; j < 500; ++j) {
      chunks[j] = {random_fingerprint(i + j), pool_id(1, i + j)};
    }
    index_->placed(kOne, chunks);
    peak = std::max(peak, heap());
    if (i % 250'000 == 1000) expect_told();
  }
  const auto live = base::IdRuns::from({{pool_id(1, 0), kChunks}});
  ASSERT_TRUE(index_->save(live));
  for (std::uint64_t i = 0; i < 1000; ++i) expect_nothing(2 * kChunks + i);
  expect_told();
  peak = std::max(peak, heap());
  EXPECT_LE(peak - before, kBudget + (1U << 20)) << "a run that is written takes 1 MiB more";
  if (is_exact()) {
    EXPECT_EQ(index_->size(), kChunks);
  }
  index_.reset();
}

INSTANTIATE_TEST_SUITE_P(All, PoolIndexContract, testing::ValuesIn(kPoolIndexSubjects),
                         [](const auto& subject) { return std::string(subject.param.name); });

}  // namespace
}  // namespace varve::index
