// SPDX-License-Identifier: Apache-2.0
// A pipeline in memory, policies that check what they are shown, and a writer of random files.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "ingest/ingest_pipeline.h"
#include "io/memory_file_system.h"
#include "memory_layout.h"
#include "support/chunker_test_data.h"

namespace varve::ingest::test {

/// An exact index that checks the promises of its caller.
class CheckedIndex final : public index::FingerprintIndex {
 public:
  void find(std::span<const Fingerprint> fingerprints,
            std::span<std::optional<ChunkId>> ids) const override {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = get(fingerprints[i]);
    ++calls;
  }
  void find_elsewhere(std::span<const Fingerprint> fingerprints,
                      std::span<bool> known) const override {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < known.size(); ++i) {
      EXPECT_FALSE(get(fingerprints[i])) << "a chunk with a stored copy was looked up elsewhere";
      known[i] = elsewhere.contains(fingerprints[i]);
    }
  }
  void insert(const Fingerprint& fingerprint, ChunkId id) override {
    const std::lock_guard lock(mutex_);
    EXPECT_FALSE(get(fingerprint)) << "a known chunk was stored as new";
    ids_[fingerprint] = id;
    ++calls;
  }
  void replace(const Fingerprint& fingerprint, ChunkId id) override {
    const std::lock_guard lock(mutex_);
    EXPECT_TRUE(get(fingerprint)) << "an unknown chunk was stored again";
    ids_[fingerprint] = id;
    ++calls;
  }
  [[nodiscard]] std::size_t size() const override { return ids_.size(); }
  [[nodiscard]] std::uint32_t covers(ChunkId /*first*/, std::uint32_t count) const override {
    return count;
  }
  /// Hides all chunks that are known now, as a deletion does.
  std::set<ChunkId> hide() {
    const std::lock_guard lock(mutex_);
    for (const auto& [fingerprint, id] : ids_) hidden_.insert(id);
    return hidden_;
  }
  std::set<Fingerprint> fingerprints() {
    const std::lock_guard lock(mutex_);
    std::set<Fingerprint> all;
    for (const auto& [fingerprint, id] : ids_) all.insert(fingerprint);
    return all;
  }

  std::set<Fingerprint> elsewhere;
  mutable std::atomic<std::uint64_t> calls{0};

 private:
  std::optional<ChunkId> get(const Fingerprint& fingerprint) const {
    const auto found = ids_.find(fingerprint);
    if (found == ids_.end() || hidden_.contains(found->second)) return std::nullopt;
    return found->second;
  }
  mutable std::mutex mutex_;
  std::map<Fingerprint, ChunkId> ids_;
  std::set<ChunkId> hidden_;
};

/// Always refers. Expects that the chunks ahead are those that it decides about next.
class ReferAhead : public DedupPolicy {
 public:
  explicit ReferAhead(std::size_t bytes) : bytes_(bytes) {}
  [[nodiscard]] Wants wants() const override { return Wants::kContainers; }
  [[nodiscard]] std::size_t look_ahead_bytes() const override { return bytes_; }
  void decide(std::span<const DedupCandidate> candidates,
              std::span<DedupDecision> decisions) override {
    ASSERT_GE(candidates.size(), decisions.size());
    ++segments;
    if (!may_repeat) {
      for (std::size_t i = 0; i < std::min(expected_.size(), candidates.size()); ++i) {
        ASSERT_EQ(candidates[i].fingerprint, expected_[i]);
      }
      expected_.clear();
      for (const auto& one : candidates.subspan(decisions.size())) {
        expected_.push_back(one.fingerprint);
      }
    }
    std::size_t ahead = 0;
    for (const auto& one : candidates.subspan(decisions.size())) ahead += one.bytes;
    if (ahead >= bytes_) ++full_segments;
    candidates_max = std::max(candidates_max, candidates.size());
    for (std::size_t i = 0; i < decisions.size(); ++i) {
      EXPECT_EQ(decisions[i], DedupDecision::kRefer);
      choose(candidates[i], decisions[i]);
    }
  }
  void on_stored(const DedupTally& tally) override {
    total.fresh_chunks += tally.fresh_chunks;
    total.shared_chunks += tally.shared_chunks;
    total.kept_chunks += tally.kept_chunks;
    total.kept_bytes += tally.kept_bytes;
    total.fresh_bytes += tally.fresh_bytes;
    total.again_chunks += tally.again_chunks;
    total.again_bytes += tally.again_bytes;
  }
  virtual void choose(const DedupCandidate& /*candidate*/, DedupDecision& /*decision*/) {}

  bool may_repeat = false;  ///< After an error, the pipeline asks again.
  std::size_t segments = 0;
  std::size_t full_segments = 0;
  std::size_t candidates_max = 0;
  DedupTally total;

 private:
  const std::size_t bytes_;
  std::vector<Fingerprint> expected_;
};

/// Has the copies stored again that are older than this policy.
class RenewOld final : public ReferAhead {
 public:
  RenewOld(std::size_t bytes, std::set<ChunkId> old) : ReferAhead(bytes), old_(std::move(old)) {}
  void choose(const DedupCandidate& candidate, DedupDecision& decision) override {
    if (candidate.stored && old_.contains(*candidate.stored)) decision = DedupDecision::kStoreAgain;
  }

 private:
  const std::set<ChunkId> old_;
};

/// Shares what another series has.
class ShareElsewhere final : public ReferAhead {
 public:
  using ReferAhead::ReferAhead;
  void choose(const DedupCandidate& candidate, DedupDecision& decision) override {
    EXPECT_FALSE(candidate.stored && candidate.elsewhere);
    if (candidate.elsewhere) decision = DedupDecision::kShare;
  }
};

/// A pipeline with what it needs, and the files that were written through it.
struct Pipeline {
  explicit Pipeline(DedupPolicy& policy)
      : pipeline(std::make_unique<IngestPipeline>(
            IngestParts{*chunker, *fingerprinter, index, policy, layout, pool, spill, metrics})) {
    EXPECT_TRUE(files->make_directory("/t"));
  }
  void start(DedupPolicy& policy) {
    pipeline.reset();
    pipeline = std::make_unique<IngestPipeline>(
        IngestParts{*chunker, *fingerprinter, index, policy, layout, pool, spill, metrics});
  }
  format::Recipe store(std::span<const std::byte> data) {
    const auto stream = pipeline->start({});
    EXPECT_TRUE(pipeline->append(stream, data));
    EXPECT_TRUE(pipeline->finish(stream));
    EXPECT_TRUE(pipeline->drain());
    return pipeline->take_finished(stream).value_or(format::Recipe());
  }
  Bytes bytes_of(const format::Recipe& recipe) {
    Bytes out;
    for (const auto& run : recipe.runs) {
      if (run.is_hole()) out.resize(out.size() + run.bytes);
      for (std::uint32_t i = 0; i < run.count; ++i) {
        const auto chunk = layout.chunk(run.first.plus(i));
        out.insert(out.end(), chunk.begin(), chunk.end());
      }
    }
    return out;
  }

  std::unique_ptr<Chunker> chunker = *make_chunker("gear16", {2048, 8192, 65536});
  const std::unique_ptr<const format::Fingerprinter> fingerprinter =
      format::make_sha256_fingerprinter();
  std::unique_ptr<io::FileSystem> files = io::make_memory_file_system();
  CheckedIndex index;
  MemoryLayout layout;
  base::Metrics registry;
  const IngestMetrics metrics{registry};
  base::ThreadPool pool{2, "test"};
  TailSpill spill{*files, "/t/tails", std::size_t{128} << 10};
  std::unique_ptr<IngestPipeline> pipeline;
};

/// Writes files by random calls, and expects to read the same bytes back.
class RandomWriter {
 public:
  RandomWriter(Pipeline& to, std::uint64_t seed) : to_(to), random_(seed) {}

  /// Fails the disk now and then.
  bool disk_fills = false;

  void run(std::size_t steps) {
    stored_ = to_.store(std::span(stock_).first(300000));
    ASSERT_FALSE(stored_.runs.empty());
    for (std::size_t i = 0; i < steps && !testing::Test::HasFailure(); ++i) step();
    to_.layout.full = false;
    while (!open_.empty()) finish(0);
    retry([&] { return to_.pipeline->drain(); });
    for (auto& file : finished_) {
      const auto recipe = to_.pipeline->take_finished(file.stream);
      ASSERT_TRUE(recipe);
      ASSERT_TRUE(to_.bytes_of(*recipe) == file.bytes) << "the bytes differ";
      recipes.push_back(*recipe);
    }
  }

  std::vector<format::Recipe> recipes;

 private:
  struct One {
    IngestPipeline::StreamPtr stream;
    Bytes bytes;
  };

  template <typename Call>
  void retry(const Call& call) {
    for (int i = 0; i < 1000; ++i) {
      const auto done = call();
      if (done) return;
      ASSERT_EQ(done.error().code(), ErrorCode::kNoSpace);
      if (i > 2) to_.layout.full = false;
    }
    FAIL() << "the call never succeeds";
  }
  void step() {
    if (disk_fills) to_.layout.full = random_() % 8 == 0;
    if (open_.size() < 4) open_.push_back({to_.pipeline->start({}), {}});
    const std::size_t at = random_() % open_.size();
    One& one = open_[at];
    switch (random_() % 24) {
      case 0:
        retry([&] { return to_.pipeline->drain(); });
        break;
      case 1:
        settle(one);
        break;
      case 2:
      case 3:
        hole(one);
        break;
      case 4:
        finish(at);
        break;
      case 5:
        take_chunks();
        break;
      case 6:
        static_cast<void>(to_.pipeline->snapshot(one.stream));
        break;
      default:
        append(one);
    }
  }
  void append(One& one) {
    // Most data repeats a small stock, near and far.
    const std::size_t bytes = 1 + random_() % (random_() % 4 == 0 ? 700000 : 60000);
    const bool known = random_() % 3 != 0;
    const Bytes fresh = known ? Bytes() : random_bytes(bytes, random_());
    const auto data = known ? std::span(stock_).subspan(random_() % 4 * 100000, bytes)
                            : std::span<const std::byte>(fresh);
    retry([&] { return to_.pipeline->append(one.stream, data); });
    one.bytes.insert(one.bytes.end(), data.begin(), data.end());
  }
  void hole(One& one) {
    const std::size_t bytes = 1 + random_() % 10000;
    retry([&] { return to_.pipeline->append_hole(one.stream, bytes); });
    one.bytes.resize(one.bytes.size() + bytes);
  }
  void settle(One& one) {
    retry([&]() -> Result<void> {
      const auto content = to_.pipeline->settle(one.stream);
      if (!content) return content.error();
      EXPECT_EQ(content->bytes(), one.bytes.size());
      Bytes bytes = to_.bytes_of(content->recipe);
      bytes.insert(bytes.end(), content->tail.begin(), content->tail.end());
      EXPECT_TRUE(bytes == one.bytes);
      return {};
    });
  }
  void finish(std::size_t at) {
    ASSERT_TRUE(to_.pipeline->finish(open_[at].stream));
    finished_.push_back(std::move(open_[at]));
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  // Begins a file with chunks that another file has.
  void take_chunks() {
    One one{to_.pipeline->start({}), {}};
    retry([&] { return to_.pipeline->append_chunks(one.stream, stored_.runs.front()); });
    format::Recipe first;
    first.append_run(stored_.runs.front());
    one.bytes = to_.bytes_of(first);
    append(one);
    open_.push_back(std::move(one));
  }

  Pipeline& to_;
  std::mt19937_64 random_;
  const Bytes stock_ = random_bytes(1100000, 99);
  std::vector<One> open_;
  std::vector<One> finished_;
  format::Recipe stored_;
};

}  // namespace varve::ingest::test
