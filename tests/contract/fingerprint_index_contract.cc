// SPDX-License-Identifier: Apache-2.0
// The promises of every FingerprintIndex: the implementations, and a reference that shares no code
// with them.
#include "index/fingerprint_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "base/id_runs.h"
#include "index/neighbour_index.h"
#include "support/index_samples.h"
#include "support/sealed_memory.h"

namespace varve::index {
namespace {

constexpr VersionNumber kOld{3};
constexpr VersionNumber kOwn{4};

/// A map from whole fingerprints.
class ReferenceIndex final : public FingerprintIndex {
 public:
  explicit ReferenceIndex(const base::IdRuns& base) {
    for (const auto& run : base.runs()) {
      for (std::uint32_t i = 0; i < run.count; ++i) base_.push_back(run.first.plus(i));
    }
  }
  void find(std::span<const Fingerprint> fingerprints,
            std::span<std::optional<ChunkId>> ids) const override {
    for (std::size_t i = 0; i < fingerprints.size(); ++i) {
      const auto found = map_.find(fingerprints[i]);
      ids[i] = found != map_.end() ? std::optional(found->second) : std::nullopt;
    }
  }
  void insert(const Fingerprint& fingerprint, ChunkId id) override { map_[fingerprint] = id; }
  void replace(const Fingerprint& fingerprint, ChunkId id) override { map_[fingerprint] = id; }
  [[nodiscard]] std::size_t size() const override { return map_.size(); }
  [[nodiscard]] std::uint32_t covers(ChunkId first, std::uint32_t count) const override {
    for (std::uint32_t i = 0; i < count; ++i) {
      const ChunkId id = first.plus(i);
      const bool own = id.birth() == kOwn;
      if (!own && std::ranges::find(base_, id) == base_.end()) return i;
    }
    return count;
  }

 private:
  std::map<Fingerprint, ChunkId> map_;
  std::vector<ChunkId> base_;
};

/// An index with so little memory that most entries are in runs. Its files are in memory.
class OnDisk final : public FingerprintIndex {
 public:
  explicit OnDisk(const base::IdRuns& base)
      : index_(base, kOwn, {test_folder(*files_, SeriesId{5}), nullptr, kMemoryBytes}) {}
  void find(std::span<const Fingerprint> fingerprints,
            std::span<std::optional<ChunkId>> ids) const override {
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

 private:
  static constexpr std::size_t kMemoryBytes = 76U << 10;  // A table of 1024 slots.
  const std::unique_ptr<io::FileSystem> files_ = test::memory_files();
  NeighbourIndex index_;
};

struct Subject {
  const char* name;
  std::unique_ptr<FingerprintIndex> (*make)(const base::IdRuns& base);
};

class FingerprintIndexContract : public testing::TestWithParam<Subject> {
 protected:
  // Two runs with a gap between them.
  const base::IdRuns base_ = base::IdRuns::from(
      {{ChunkId::make(VersionNumber{1}, 7), 100}, {ChunkId::make(kOld, 0), 100}});
  const std::unique_ptr<FingerprintIndex> index_ = GetParam().make(base_);
};

Fingerprint fingerprint(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Fingerprint out;
  for (auto& b : out) b = static_cast<std::byte>(random());
  return out;
}

std::vector<std::optional<ChunkId>> find(const FingerprintIndex& index,
                                         const std::vector<Fingerprint>& fingerprints) {
  // Old content of the results must not shine through.
  std::vector<std::optional<ChunkId>> ids(fingerprints.size(), ChunkId::make(kOld, 77));
  index.find(fingerprints, ids);
  return ids;
}

TEST_P(FingerprintIndexContract, EmptyIndexFindsNothing) {
  EXPECT_EQ(index_->size(), 0U);
  EXPECT_TRUE(find(*index_, {}).empty());
  EXPECT_EQ(find(*index_, {fingerprint(1), fingerprint(2)}),
            (std::vector<std::optional<ChunkId>>(2)));
  EXPECT_FALSE(index_->find_one(fingerprint(1)));
}

TEST_P(FingerprintIndexContract, BatchAnswersInItsOwnOrderAlsoForRepeatedFingerprints) {
  for (std::uint32_t i = 0; i < 100; ++i) {
    index_->insert(fingerprint(i), base_.select(i));
    index_->insert(fingerprint(1000 + i), ChunkId::make(kOwn, i));
  }
  EXPECT_EQ(index_->size(), 200U);
  const std::vector<Fingerprint> batch{fingerprint(1005), fingerprint(5), fingerprint(5000),
                                       fingerprint(5), fingerprint(99)};
  const std::vector<std::optional<ChunkId>> wanted{ChunkId::make(kOwn, 5), base_.select(5),
                                                   std::nullopt, base_.select(5), base_.select(99)};
  EXPECT_EQ(find(*index_, batch), wanted);
  for (std::size_t i = 0; i < batch.size(); ++i) EXPECT_EQ(index_->find_one(batch[i]), wanted[i]);
}

TEST_P(FingerprintIndexContract, ReplacedChunkIsFoundUnderItsNewIdOnly) {
  index_->insert(fingerprint(1), base_.select(1));
  index_->insert(fingerprint(2), base_.select(2));
  index_->replace(fingerprint(1), ChunkId::make(kOwn, 0));
  EXPECT_EQ(index_->find_one(fingerprint(1)), ChunkId::make(kOwn, 0));
  EXPECT_EQ(index_->find_one(fingerprint(2)), base_.select(2));
  index_->replace(fingerprint(1), ChunkId::make(kOwn, 1));
  EXPECT_EQ(index_->find_one(fingerprint(1)), ChunkId::make(kOwn, 1));
  EXPECT_EQ(index_->size(), 2U);
  index_->replace(fingerprint(3), ChunkId::make(kOwn, 2));
  EXPECT_EQ(index_->find_one(fingerprint(3)), ChunkId::make(kOwn, 2)) << "replace() also inserts";
}

TEST_P(FingerprintIndexContract, CoversOwnChunksAndTheNeighbours) {
  EXPECT_EQ(index_->covers(ChunkId::make(kOwn, 5), 1000), 1000U);
  const ChunkId first = ChunkId::make(VersionNumber{1}, 7);
  EXPECT_EQ(index_->covers(first, 100), 100U);
  EXPECT_EQ(index_->covers(first, 150), 100U) << "up to the gap";
  EXPECT_EQ(index_->covers(first.plus(40), 1), 1U);
  EXPECT_EQ(index_->covers(ChunkId::make(VersionNumber{1}, 6), 5), 0U);
  EXPECT_EQ(index_->covers(ChunkId::make(VersionNumber{2}, 0), 5), 0U);
}

TEST_P(FingerprintIndexContract, RandomUseAgreesWithTheReference) {
  ReferenceIndex reference(base_);
  std::mt19937_64 random(42);
  std::uint32_t next = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<Fingerprint> batch;
    for (auto n = random() % 60; n > 0; --n) batch.push_back(fingerprint(random() % 3000));
    const auto ids = find(*index_, batch);
    ASSERT_EQ(ids, find(reference, batch)) << "seed 42, round " << round;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const ChunkId id = ChunkId::make(kOwn, next++);
      if (!index_->find_one(batch[i])) {
        index_->insert(batch[i], id);
        reference.insert(batch[i], id);
      } else if (random() % 3 == 0) {
        index_->replace(batch[i], id);
        reference.replace(batch[i], id);
      }
    }
    ASSERT_EQ(index_->size(), reference.size());
    const ChunkId from{ChunkId::make(VersionNumber{1}, 7).value + random() % 120};
    const auto count = static_cast<std::uint32_t>(random() % 120 + 1);
    ASSERT_EQ(index_->covers(from, count), reference.covers(from, count));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, FingerprintIndexContract,
    testing::Values(Subject{"neighbour",
                            [](const base::IdRuns& base) -> std::unique_ptr<FingerprintIndex> {
                              return std::make_unique<NeighbourIndex>(base, kOwn);
                            }},
                    Subject{"on_disk",
                            [](const base::IdRuns& base) -> std::unique_ptr<FingerprintIndex> {
                              return std::make_unique<OnDisk>(base);
                            }},
                    Subject{"reference",
                            [](const base::IdRuns& base) -> std::unique_ptr<FingerprintIndex> {
                              return std::make_unique<ReferenceIndex>(base);
                            }}),
    [](const auto& subject) { return std::string(subject.param.name); });

}  // namespace
}  // namespace varve::index
