// SPDX-License-Identifier: Apache-2.0
// From bytes to recipes, with a layout that keeps chunks in memory.
#include "ingest/ingest_pipeline.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "index/neighbour_index.h"
#include "io/memory_file_system.h"
#include "memory_layout.h"
#include "support/faulty_file_system.h"

namespace varve::ingest {
namespace {

using test::Bytes;
using test::random_bytes;
using StreamPtr = IngestPipeline::StreamPtr;

constexpr VersionNumber kVersion{1};

class IngestPipelineTest : public testing::Test {
 protected:
  IngestPipelineTest() : index_(base::IdRuns(), kVersion), files_(io::make_memory_file_system()) {
    EXPECT_TRUE(files_.make_directory("/t"));
    chunker_ = std::move(*make_chunker("gear16", {2048, 8192, 65536}));
    pool_ = std::make_unique<base::ThreadPool>(2, "test");
    spill_ = std::make_unique<TailSpill>(files_, "/t/tails", std::size_t{128} << 10);
    pipeline_ = std::make_unique<IngestPipeline>(IngestParts{
        *chunker_, *fingerprinter_, index_, policy_, layout_, *pool_, *spill_, metrics_});
  }

  void append(const StreamPtr& stream, std::span<const std::byte> data) {
    const auto done = pipeline_->append(stream, data);
    ASSERT_TRUE(done) << done.error().message();
  }
  format::Recipe finish(const StreamPtr& stream) {
    EXPECT_TRUE(pipeline_->finish(stream));
    const auto drained = pipeline_->drain();
    EXPECT_TRUE(drained) << (drained ? "" : drained.error().message());
    auto recipe = pipeline_->take_finished(stream);
    EXPECT_TRUE(recipe.has_value());
    return recipe.value_or(format::Recipe());
  }
  Bytes bytes_of(const format::Recipe& recipe) {
    Bytes out;
    for (const auto& run : recipe.runs) {
      const std::size_t before = out.size();
      if (run.is_hole()) out.resize(out.size() + run.bytes);
      for (std::uint32_t i = 0; i < run.count; ++i) {
        const auto chunk = layout_.chunk(run.first.plus(i));
        out.insert(out.end(), chunk.begin(), chunk.end());
      }
      EXPECT_EQ(out.size() - before, run.bytes);
    }
    return out;
  }
  std::vector<std::size_t> lengths_of(const format::Recipe& recipe) {
    std::vector<std::size_t> lengths;
    for (const auto& run : recipe.runs) {
      for (std::uint32_t i = 0; i < run.count; ++i) {
        lengths.push_back(layout_.chunk(run.first.plus(i)).size());
      }
    }
    return lengths;
  }

  MemoryLayout layout_;
  base::Metrics registry_;
  const IngestMetrics metrics_{registry_};
  index::NeighbourIndex index_;
  varve::test::FaultyFileSystem files_;
  AlwaysRefer policy_;
  const std::unique_ptr<const format::Fingerprinter> fingerprinter_ =
      format::make_sha256_fingerprinter();
  std::unique_ptr<Chunker> chunker_;
  std::unique_ptr<base::ThreadPool> pool_;
  std::unique_ptr<TailSpill> spill_;
  std::unique_ptr<IngestPipeline> pipeline_;
};

TEST_F(IngestPipelineTest, InterleavedStreamsBeyondMemoryGiveExactlyTheirBytes) {
  constexpr std::size_t kStreams = 1000;
  const Bytes stock = random_bytes(4U << 20, 1);
  std::mt19937_64 random(2);
  struct One {
    StreamPtr stream;
    std::size_t from = 0;
    std::size_t bytes = 0;
    std::size_t done = 0;
  };
  std::vector<One> all(kStreams);
  for (auto& one : all) {
    one.stream = pipeline_->start({});
    one.bytes = 70000 + random() % 60000;
    one.from = random() % (stock.size() - one.bytes);
  }
  for (bool more = true; more;) {
    more = false;
    for (auto& one : all) {
      const auto n = std::min<std::size_t>(one.bytes - one.done, 20000 + random() % 20000);
      append(one.stream, std::span(stock).subspan(one.from + one.done, n));
      one.done += n;
      more = more || one.done < one.bytes;
    }
  }
  EXPECT_TRUE(*files_.exists("/t/tails"));  // Or the test is too small.
  for (auto& one : all) ASSERT_TRUE(pipeline_->finish(one.stream));
  ASSERT_TRUE(pipeline_->drain());
  for (auto& one : all) {
    const auto recipe = pipeline_->take_finished(one.stream);
    ASSERT_TRUE(recipe);
    const auto data = std::span(stock).subspan(one.from, one.bytes);
    ASSERT_EQ(lengths_of(*recipe), test::cut(*chunker_, data));
    ASSERT_TRUE(bytes_of(*recipe) == Bytes(data.begin(), data.end()));
  }
  all.clear();
  pipeline_.reset();
  spill_.reset();
  EXPECT_FALSE(*files_.exists("/t/tails"));
}

TEST_F(IngestPipelineTest, BoundariesAreThoseOfTheWholeFileHoweverItIsWritten) {
  const Bytes data = random_bytes(3300000, 3);
  const auto wanted = test::cut(*chunker_, data);
  for (const std::size_t piece : {std::size_t{1000}, std::size_t{65536}, std::size_t{65537},
                                  std::size_t{1} << 20, data.size()}) {
    const auto stream = pipeline_->start({});
    for (std::size_t at = 0; at < data.size(); at += piece) {
      append(stream, std::span(data).subspan(at, std::min(piece, data.size() - at)));
    }
    const auto recipe = finish(stream);
    EXPECT_EQ(lengths_of(recipe), wanted) << piece;
    EXPECT_TRUE(bytes_of(recipe) == data) << piece;
    EXPECT_EQ(layout_.chunks(), wanted.size()) << "the same bytes were stored again";
  }
}

TEST_F(IngestPipelineTest, SettlingOnTheWayMovesNoBoundary) {
  const Bytes data = random_bytes(1500000, 4);
  auto stream = pipeline_->start({});
  std::mt19937_64 random(5);
  for (std::size_t at = 0; at < data.size();) {
    const auto n = std::min<std::size_t>(data.size() - at, 1 + random() % 200000);
    append(stream, std::span(data).subspan(at, n));
    at += n;
    const auto content = pipeline_->settle(stream);
    ASSERT_TRUE(content);
    ASSERT_EQ(content->bytes(), at);
    ASSERT_LT(content->tail.size(), chunker_->sizes().max);
    if (random() % 2 == 0) {  // As a restart does: from what was settled.
      pipeline_->discard(stream);
      stream = pipeline_->start(*content);
    }
  }
  const auto recipe = finish(stream);
  EXPECT_EQ(lengths_of(recipe), test::cut(*chunker_, data));
  EXPECT_TRUE(bytes_of(recipe) == data);
}

TEST_F(IngestPipelineTest, HolesStandBetweenChunksAndJoin) {
  const Bytes a = random_bytes(100001, 6);
  const Bytes b = random_bytes(7, 7);
  const auto stream = pipeline_->start({});
  const auto hole = [&](std::uint64_t bytes) {
    ASSERT_TRUE(pipeline_->append_hole(stream, bytes));
  };
  hole(1ULL << 40);
  hole(0);
  append(stream, a);
  hole(3);
  hole(4);
  append(stream, b);
  hole(1);
  const auto recipe = finish(stream);
  ASSERT_GE(recipe.runs.size(), 5U);
  EXPECT_TRUE(recipe.runs.front().is_hole());
  EXPECT_EQ(recipe.runs.front().bytes, 1ULL << 40);
  EXPECT_TRUE(recipe.runs.back().is_hole());
  EXPECT_EQ(recipe.runs.back().bytes, 1U);
  EXPECT_EQ(recipe.data_bytes(), a.size() + b.size());
  EXPECT_EQ(recipe.bytes(), (1ULL << 40) + a.size() + 7 + b.size() + 1);
  format::Recipe rest = recipe;
  rest.runs.erase(rest.runs.begin());
  Bytes wanted = a;
  wanted.resize(wanted.size() + 7);
  wanted.insert(wanted.end(), b.begin(), b.end());
  wanted.resize(wanted.size() + 1);
  EXPECT_TRUE(bytes_of(rest) == wanted);
  auto expected = test::cut(*chunker_, a);
  expected.push_back(b.size());
  EXPECT_EQ(lengths_of(recipe), expected);
}

TEST_F(IngestPipelineTest, FullDiskLosesNothingThatWasTaken) {
  Bytes data = random_bytes(24U << 20, 8);
  constexpr std::size_t kPiece = 300000;
  const auto stream = pipeline_->start({});
  Bytes small = random_bytes(5000, 9);
  const auto other = pipeline_->start({});
  append(other, small);
  std::size_t taken = 0;
  std::size_t refused = 0;
  while (taken < data.size()) {
    layout_.full = (taken / kPiece) % 10 >= 4 && refused < 3;
    const auto part = std::span(data).subspan(taken, std::min(kPiece, data.size() - taken));
    const auto done = pipeline_->append(stream, part);
    if (done) {
      taken += part.size();
      if ((taken / kPiece) % 10 != 0) continue;
      refused = 0;
      layout_.full = false;
      // drain() tells of the full disk, or waits until all has its place.
      const auto drained = pipeline_->drain();
      if (!drained) {
        ASSERT_EQ(drained.error().code(), ErrorCode::kNoSpace);
      }
      continue;
    }
    ASSERT_EQ(done.error().code(), ErrorCode::kNoSpace);
    ++refused;
  }
  layout_.full = true;
  ASSERT_TRUE(pipeline_->finish(other));  // Closing takes what was written in any case.
  ASSERT_FALSE(pipeline_->drain());
  EXPECT_EQ(pipeline_->status().error().code(), ErrorCode::kNoSpace);
  // The pipeline tries again in the background, so it may take this before it meets the error.
  if (pipeline_->append(stream, small)) data.insert(data.end(), small.begin(), small.end());
  EXPECT_FALSE(pipeline_->take_finished(other));
  layout_.full = false;
  const auto recipe = finish(stream);
  EXPECT_TRUE(bytes_of(recipe) == data);
  EXPECT_EQ(lengths_of(recipe), test::cut(*chunker_, data));
  const auto closed = pipeline_->take_finished(other);
  ASSERT_TRUE(closed);
  EXPECT_TRUE(bytes_of(*closed) == small);
  EXPECT_TRUE(pipeline_->status());
}

TEST_F(IngestPipelineTest, BrokenDiskIsToldEachTime) {
  layout_.broken = true;
  const auto stream = pipeline_->start({});
  append(stream, random_bytes(1000, 10));
  ASSERT_TRUE(pipeline_->finish(stream));
  for (int i = 0; i < 3; ++i) {
    const auto drained = pipeline_->drain();
    ASSERT_FALSE(drained);
    EXPECT_EQ(drained.error().code(), ErrorCode::kIo);
  }
  EXPECT_FALSE(pipeline_->take_finished(stream));
}

TEST_F(IngestPipelineTest, SpillThatCannotBeWrittenStopsTakingButLosesNothing) {
  files_.faults.disk_full = true;
  const Bytes data = random_bytes(40000, 11);
  std::vector<StreamPtr> streams;
  std::optional<ErrorCode> refused;
  for (int i = 0; i < 3000 && !refused; ++i) {
    const auto stream = pipeline_->start({});
    const auto done = pipeline_->append(stream, data);
    if (done) {
      streams.push_back(stream);
    } else {
      refused = done.error().code();
    }
  }
  ASSERT_TRUE(refused);  // Else buffers would grow without a bound.
  EXPECT_EQ(*refused, ErrorCode::kNoSpace);
  files_.faults.disk_full = false;
  for (const auto& stream : streams) append(stream, data);
  Bytes twice = data;
  twice.insert(twice.end(), data.begin(), data.end());
  for (const auto& stream : streams) ASSERT_TRUE(pipeline_->finish(stream));
  ASSERT_TRUE(pipeline_->drain());
  for (const auto& stream : streams) {
    const auto recipe = pipeline_->take_finished(stream);
    ASSERT_TRUE(recipe && bytes_of(*recipe) == twice);
  }
}

TEST_F(IngestPipelineTest, SpilledTailThatCannotBeReadIsNotForgotten) {
  const Bytes data = random_bytes(40000, 12);
  const auto first = pipeline_->start({});
  append(first, data);
  std::vector<StreamPtr> others;
  while (!*files_.exists("/t/tails")) {
    others.push_back(pipeline_->start({}));
    append(others.back(), data);
  }
  files_.faults.reads_fail = true;
  EXPECT_FALSE(pipeline_->finish(first));
  EXPECT_FALSE(pipeline_->snapshot(first));
  ASSERT_TRUE(pipeline_->drain());
  EXPECT_FALSE(pipeline_->take_finished(first)) << "a recipe without the tail";
  files_.faults.reads_fail = false;
  EXPECT_TRUE(bytes_of(finish(first)) == data);
}

TEST_F(IngestPipelineTest, DestructionWithWorkInFlightWaitsForIt) {
  for (const bool full : {false, true}) {
    layout_.full = full;
    IngestPipeline pipeline(
        {*chunker_, *fingerprinter_, index_, policy_, layout_, *pool_, *spill_, metrics_});
    const auto stream = pipeline.start({});
    ASSERT_TRUE(pipeline.append(stream, random_bytes(9U << 20, full ? 13 : 14)));
    ASSERT_TRUE(pipeline.finish(stream));
  }
}

/// Counts the fingerprints that are looked up in another index.
class CountingIndex final : public index::FingerprintIndex {
 public:
  explicit CountingIndex(index::FingerprintIndex& index) : index_(index) {}
  void find(std::span<const Fingerprint> fingerprints,
            std::span<std::optional<ChunkId>> ids) const override {
    lookups += fingerprints.size();
    index_.find(fingerprints, ids);
  }
  void insert(const Fingerprint& fingerprint, ChunkId id) override {
    index_.insert(fingerprint, id);
  }
  void replace(const Fingerprint& fingerprint, ChunkId id) override {
    index_.replace(fingerprint, id);
  }
  [[nodiscard]] std::size_t size() const override { return index_.size(); }
  [[nodiscard]] std::uint32_t covers(ChunkId first, std::uint32_t count) const override {
    return index_.covers(first, count);
  }
  mutable std::atomic<std::size_t> lookups{0};

 private:
  index::FingerprintIndex& index_;
};

TEST_F(IngestPipelineTest, OnlyChunksThatOneBatchRepeatsAreLookedUpTwice) {
  CountingIndex counting(index_);
  IngestPipeline pipeline(
      {*chunker_, *fingerprinter_, counting, policy_, layout_, *pool_, *spill_, metrics_});
  const auto store = [&](const Bytes& data) {
    const auto stream = pipeline.start({});
    EXPECT_TRUE(pipeline.append(stream, data));
    EXPECT_TRUE(pipeline.finish(stream));
    EXPECT_TRUE(pipeline.drain());
    const auto recipe = pipeline.take_finished(stream).value_or(format::Recipe());
    EXPECT_TRUE(bytes_of(recipe) == data);
    return lengths_of(recipe).size();
  };
  const Bytes data = random_bytes(3000000, 21);
  std::size_t cut = store(data);
  EXPECT_EQ(layout_.chunks(), cut);
  EXPECT_EQ(counting.lookups, cut);
  cut += store(data);
  EXPECT_EQ(counting.lookups, cut);

  // The chunks of zeros are all the same. The first batch stores one and looks the others up.
  const std::size_t before = layout_.chunks();
  const std::size_t zeros = store(Bytes(IngestPipeline::kBatchBytes / 2));
  ASSERT_GT(zeros, 3U);
  EXPECT_LE(layout_.chunks() - before, 2U);
  EXPECT_GT(counting.lookups, cut + zeros);
}

TEST(TailSpill, SlotsAreUsedAgainAndTheFileGoes) {
  const auto files = io::make_memory_file_system();
  ASSERT_TRUE(files->make_directory("/t"));
  {
    TailSpill spill(*files, "/t/tails", 4096);
    EXPECT_FALSE(*files->exists("/t/tails"));
    const Bytes a = random_bytes(4096, 1);
    const Bytes b = random_bytes(1, 2);
    auto first = spill.put(a);
    auto second = spill.put(b);
    ASSERT_TRUE(first && second);
    EXPECT_NE(first->number, second->number);
    Bytes out(first->bytes);
    ASSERT_TRUE(spill.read(*first, out));
    EXPECT_TRUE(out == a);
    spill.free(*first);
    const auto third = spill.put(b);
    ASSERT_TRUE(third);
    EXPECT_EQ(third->number, first->number);
    out.resize(1);
    ASSERT_TRUE(spill.read(*second, out));
    EXPECT_TRUE(out == b);
    EXPECT_LE(*files->tree_bytes("/t/tails"), 2U * 4096);
  }
  EXPECT_FALSE(*files->exists("/t/tails"));
}

}  // namespace
}  // namespace varve::ingest
