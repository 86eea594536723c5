// SPDX-License-Identifier: Apache-2.0
// The hook at which a policy decides whether a duplicate is stored again.
#include "ingest/dedup_policy.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "index/neighbour_index.h"
#include "ingest/ingest_pipeline.h"
#include "io/memory_file_system.h"
#include "memory_layout.h"
#include "support/chunker_test_data.h"

namespace varve::ingest {
namespace {

using test::Bytes;
using test::random_bytes;

/// Stores every n-th duplicate again, and notes everything that it is shown.
class EveryNth final : public DedupPolicy {
 public:
  EveryNth(std::uint64_t n, Wants wants) : n_(n), wants_(wants) {}

  [[nodiscard]] Wants wants() const override { return wants_; }
  void decide(std::span<const DedupCandidate> segment,
              std::span<DedupDecision> decisions) override {
    ASSERT_EQ(segment.size(), decisions.size());
    for (std::size_t i = 0; i < segment.size(); ++i) {
      ASSERT_EQ(decisions[i], DedupDecision::kRefer);
      if (segment[i].stored && ++duplicates % n_ == 0) decisions[i] = DedupDecision::kStoreAgain;
    }
    segments.emplace_back(segment.begin(), segment.end());
    decided.emplace_back(decisions.begin(), decisions.end());
  }

  std::uint64_t duplicates = 0;
  std::vector<std::vector<DedupCandidate>> segments;
  std::vector<std::vector<DedupDecision>> decided;

 private:
  const std::uint64_t n_;
  const Wants wants_;
};

/// Stores the first duplicate of each content in a segment again, and refers for all others.
class FirstOfEachSegment final : public DedupPolicy {
 public:
  [[nodiscard]] Wants wants() const override { return Wants::kChunks; }
  void decide(std::span<const DedupCandidate> segment,
              std::span<DedupDecision> decisions) override {
    std::set<Fingerprint> seen;
    for (std::size_t i = 0; i < segment.size(); ++i) {
      if (!segment[i].stored) continue;
      ++duplicates;
      if (seen.insert(segment[i].fingerprint).second) decisions[i] = DedupDecision::kStoreAgain;
    }
  }
  std::uint64_t duplicates = 0;
};

/// An index without room for a second id of a content.
class FullIndex final : public index::FingerprintIndex {
 public:
  void find(std::span<const Fingerprint> fingerprints,
            std::span<std::optional<ChunkId>> ids) const override {
    index_.find(fingerprints, ids);
  }
  void insert(const Fingerprint& fingerprint, ChunkId id) override {
    index_.insert(fingerprint, id);
  }
  void replace(const Fingerprint& /*fingerprint*/, ChunkId /*id*/) override { ++kept; }
  [[nodiscard]] std::size_t size() const override { return index_.size(); }
  [[nodiscard]] std::uint32_t covers(ChunkId first, std::uint32_t count) const override {
    return index_.covers(first, count);
  }
  std::uint64_t kept = 0;

 private:
  index::NeighbourIndex index_{base::IdRuns(), kLayoutVersion};
};

/// Computes the number of stored chunks from a policy's notes, without an index.
std::size_t oracle_chunks(const EveryNth& policy) {
  std::set<Fingerprint> known;
  std::size_t stored = 0;
  for (std::size_t s = 0; s < policy.segments.size(); ++s) {
    const auto before = known;
    std::set<Fingerprint> renewed;  // A segment stores a chunk at most once.
    for (std::size_t i = 0; i < policy.segments[s].size(); ++i) {
      const auto& candidate = policy.segments[s][i];
      EXPECT_EQ(candidate.stored.has_value(), before.contains(candidate.fingerprint));
      const bool fresh = known.insert(candidate.fingerprint).second;
      const bool again = policy.decided[s][i] == DedupDecision::kStoreAgain &&
                         renewed.insert(candidate.fingerprint).second;
      stored += fresh || again ? 1 : 0;
    }
  }
  return stored;
}

class DedupPolicyTest : public testing::Test {
 protected:
  DedupPolicyTest()
      : chunker_(*make_chunker("gear16", {2048, 8192, 65536})),
        files_(io::make_memory_file_system()) {
    EXPECT_TRUE(files_->make_directory("/t"));
  }

  void start(DedupPolicy& policy) {
    registry_ = std::make_unique<base::Metrics>();
    metrics_ = std::make_unique<IngestMetrics>(*registry_);
    pipeline_ = std::make_unique<IngestPipeline>(IngestParts{
        *chunker_, *fingerprinter_, *index_, policy, layout_, pool_, spill_, *metrics_});
  }
  /// Stores a file and expects the same bytes back.
  format::Recipe store(const Bytes& data) {
    const auto stream = pipeline_->start({});
    EXPECT_TRUE(pipeline_->append(stream, data));
    EXPECT_TRUE(pipeline_->finish(stream));
    EXPECT_TRUE(pipeline_->drain());
    auto recipe = pipeline_->take_finished(stream).value_or(format::Recipe());
    Bytes back;
    for (const auto& run : recipe.runs) {
      for (std::uint32_t i = 0; i < run.count; ++i) {
        const auto chunk = layout_.chunk(run.first.plus(i));
        back.insert(back.end(), chunk.begin(), chunk.end());
      }
    }
    EXPECT_TRUE(back == data) << "the restored bytes differ";
    return recipe;
  }

  std::unique_ptr<Chunker> chunker_;
  const std::unique_ptr<const format::Fingerprinter> fingerprinter_ =
      format::make_sha256_fingerprinter();
  std::unique_ptr<index::FingerprintIndex> index_ =
      std::make_unique<index::NeighbourIndex>(base::IdRuns(), kLayoutVersion);
  MemoryLayout layout_;
  base::ThreadPool pool_{2, "test"};
  std::unique_ptr<io::FileSystem> files_;
  TailSpill spill_{*files_, "/t/tails", std::size_t{128} << 10};
  std::unique_ptr<base::Metrics> registry_;
  std::unique_ptr<IngestMetrics> metrics_;
  std::unique_ptr<IngestPipeline> pipeline_;
};

Bytes repeated(const Bytes& data, int times) {
  Bytes out;
  for (int i = 0; i < times; ++i) out.insert(out.end(), data.begin(), data.end());
  return out;
}

TEST_F(DedupPolicyTest, EveryNthDuplicateIsStoredAgainAndAllBytesComeBack) {
  for (const std::uint64_t n : {1U, 2U, 7U, 1000000U}) {
    EveryNth policy(n, DedupPolicy::Wants::kChunks);
    layout_.clear();
    index_ = std::make_unique<index::NeighbourIndex>(base::IdRuns(), kLayoutVersion);
    start(policy);
    const Bytes one = random_bytes(3000000, 17);
    const Bytes other = random_bytes(1500000, 18);
    store(one);
    store(one);
    store(repeated(other, 3));
    store(repeated(one, 2));
    store({});
    EXPECT_EQ(layout_.chunks(), oracle_chunks(policy)) << n;
    EXPECT_EQ(pipeline_->placed_chunks(), layout_.chunks());
    const std::uint64_t fresh = metrics_->new_chunks.value();
    const std::uint64_t renewed = metrics_->again_chunks.value();
    EXPECT_EQ(fresh + renewed, layout_.chunks());
    EXPECT_GT(fresh, 0U);
    EXPECT_EQ(renewed != 0, policy.duplicates >= n);
    EXPECT_EQ(metrics_->cut_chunks.value(), fresh + renewed + metrics_->duplicate_chunks.value());
    EXPECT_EQ(metrics_->received_bytes.value(), 4 * one.size() + 3 * other.size());
    std::uint64_t again = 0;
    for (const auto& decisions : policy.decided) {
      for (const auto decision : decisions) again += decision == DedupDecision::kStoreAgain ? 1 : 0;
    }
    EXPECT_EQ(again, policy.duplicates / n);
    EXPECT_GT(policy.duplicates, 700U);
    pipeline_.reset();
  }
}

TEST_F(DedupPolicyTest, LaterDuplicatesReferToTheNewCopy) {
  EveryNth again(1, DedupPolicy::Wants::kChunks);
  start(again);
  const Bytes data = random_bytes(1000000, 3);
  const auto first = store(data);
  const auto second = store(data);
  EXPECT_GT(second.runs.front().first, first.runs.back().first);
  pipeline_.reset();
  AlwaysRefer refer;
  start(refer);
  EXPECT_EQ(store(data).runs, second.runs);
}

std::set<ChunkId> ids_of(const format::Recipe& recipe) {
  std::set<ChunkId> ids;
  for (const auto& run : recipe.runs) {
    for (std::uint32_t i = 0; i < run.count; ++i) ids.insert(run.first.plus(i));
  }
  return ids;
}

// The batch of a small file is one segment.
TEST_F(DedupPolicyTest, DuplicatesInTheSameSegmentReferToTheNewCopy) {
  const Bytes data = random_bytes(100000, 4);
  const Bytes file = repeated(data, 6);
  FirstOfEachSegment first_only;
  EveryNth every(1, DedupPolicy::Wants::kChunks);
  for (DedupPolicy* policy :
       {static_cast<DedupPolicy*>(&first_only), static_cast<DedupPolicy*>(&every)}) {
    layout_.clear();
    index_ = std::make_unique<index::NeighbourIndex>(base::IdRuns(), kLayoutVersion);
    start(*policy);
    const auto old_ids = ids_of(store(file));
    EXPECT_EQ(layout_.chunks(), old_ids.size()) << "the first file holds each content once";
    const auto new_ids = ids_of(store(file));
    EXPECT_EQ(new_ids.size(), old_ids.size());
    EXPECT_GT(*new_ids.begin(), *old_ids.rbegin());
    EXPECT_EQ(layout_.chunks(), 2 * old_ids.size()) << "a segment stores a chunk at most once";
    pipeline_.reset();
    AlwaysRefer refer;
    start(refer);
    EXPECT_EQ(ids_of(store(file)), new_ids) << "the next file refers to the newest copy";
    pipeline_.reset();
  }
  EXPECT_GT(first_only.duplicates, 50U);
}

TEST_F(DedupPolicyTest, FullIndexKeepsTheOldCopyAndLosesNoBytes) {
  const Bytes file = repeated(random_bytes(100000, 4), 6);
  auto full = std::make_unique<FullIndex>();
  const FullIndex& index = *full;
  index_ = std::move(full);
  EveryNth again(1, DedupPolicy::Wants::kChunks);
  start(again);
  const auto first = store(file);
  const auto before = layout_.chunks();
  store(file);
  EXPECT_EQ(layout_.chunks(), before + index.kept) << "each decision stores one more copy";
  EXPECT_EQ(index.kept, again.duplicates);
  pipeline_.reset();
  AlwaysRefer refer;
  start(refer);
  EXPECT_EQ(store(file).runs, first.runs) << "the index keeps the first copy";
}

TEST_F(DedupPolicyTest, PolicyThatWantsNothingIsNotAskedAndLocatesNothing) {
  EveryNth policy(1, DedupPolicy::Wants::kNothing);
  start(policy);
  const Bytes data = random_bytes(2000000, 5);
  const auto first = store(data);
  EXPECT_EQ(store(data).runs, first.runs);
  EXPECT_TRUE(policy.segments.empty());
  EXPECT_EQ(layout_.located, 0U);
}

TEST_F(DedupPolicyTest, ContainersAreGivenOnlyToAPolicyThatWantsThem) {
  EveryNth chunks(1000000, DedupPolicy::Wants::kChunks);
  start(chunks);
  const Bytes data = random_bytes(2000000, 6);
  store(data);
  store(data);
  EXPECT_EQ(layout_.located, 0U);
  for (const auto& segment : chunks.segments) {
    for (const auto& candidate : segment) EXPECT_FALSE(candidate.container);
  }
  pipeline_.reset();

  EveryNth containers(1000000, DedupPolicy::Wants::kContainers);
  start(containers);
  layout_.unwritten_from = static_cast<std::uint32_t>(layout_.chunks() - 20);
  store(data);
  std::uint64_t known = 0;
  std::uint64_t unknown = 0;
  for (const auto& segment : containers.segments) {
    for (const auto& candidate : segment) {
      ASSERT_TRUE(candidate.stored.has_value());
      ASSERT_GT(candidate.bytes, 0U);
      const std::uint32_t ordinal = candidate.stored->ordinal();
      if (ordinal >= layout_.unwritten_from) {
        EXPECT_FALSE(candidate.container);
        ++unknown;
      } else {
        ASSERT_TRUE(candidate.container.has_value());
        EXPECT_EQ(*candidate.container, ContainerNumber{ordinal / MemoryLayout::kContainerChunks});
        ++known;
      }
    }
  }
  EXPECT_EQ(unknown, 20U);
  EXPECT_GT(known, 100U);
  EXPECT_LT(layout_.located, known) << "a run is located once";
}

TEST_F(DedupPolicyTest, FullDiskStopsAndResumesWithoutLosingAChunk) {
  EveryNth policy(2, DedupPolicy::Wants::kChunks);
  start(policy);
  const Bytes data = random_bytes(2000000, 8);
  const auto first = store(data);
  layout_.full = true;
  const auto stream = pipeline_->start({});
  static_cast<void>(pipeline_->append(stream, data));
  static_cast<void>(pipeline_->finish(stream));
  EXPECT_FALSE(pipeline_->drain());
  layout_.full = false;
  const auto next = pipeline_->start({});
  EXPECT_TRUE(pipeline_->append(next, data));
  EXPECT_TRUE(pipeline_->finish(next));
  ASSERT_TRUE(pipeline_->drain());
  const auto recipe = pipeline_->take_finished(next);
  ASSERT_TRUE(recipe.has_value());
  EXPECT_EQ(recipe->bytes(), data.size());
  EXPECT_EQ(layout_.chunks(), pipeline_->placed_chunks());
}

}  // namespace
}  // namespace varve::ingest
