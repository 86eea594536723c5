// SPDX-License-Identifier: Apache-2.0
// Random histories of versions, deletions, crashes and damage, against a map from fingerprints.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/log.h"
#include "index/neighbour_index.h"
#include "support/damage_file.h"
#include "support/faulty_file_system.h"
#include "support/index_samples.h"
#include "support/sealed_memory.h"

namespace varve::index {
namespace {

constexpr SeriesId kHistorySeries{5};
constexpr std::size_t kWindow = 3;
// Makes the table spill after 1536 entries.
constexpr std::size_t kMemoryBytes = 256U << 10;
constexpr std::uint64_t kContainerChunks = 64;

/// The stored chunks: 64 consecutive ids make up a container.
class Store final : public StoredFingerprints {
 public:
  bool around(ChunkId id, const Visit& visit) override {
    ++containers_read;
    const ChunkId first{id.value / kContainerChunks * kContainerChunks};
    for (std::uint64_t i = 0; i < kContainerChunks; ++i) {
      const auto found = content_.find(first.plus(i).value);
      if (found != content_.end()) visit(random_fingerprint(found->second), ChunkId{found->first});
    }
    return true;
  }
  void add(ChunkId id, std::uint64_t content) { content_[id.value] = content; }
  [[nodiscard]] std::uint64_t content_of(ChunkId id) const { return content_.at(id.value); }

  std::uint64_t containers_read = 0;

 private:
  std::unordered_map<std::uint64_t, std::uint64_t> content_;
};

/// A series as the index sees it.
class History {
 public:
  explicit History(std::uint64_t seed) : random_(seed) {}

  void step() {
    const auto action = random_() % 10;
    if (action == 0 && !sealed_.empty()) {
      erase();
    } else if (action == 1) {
      damage();
    } else {
      write_version(action == 2);
    }
  }

 private:
  struct Version {
    base::IdRuns chunks;
  };

  [[nodiscard]] base::IdRuns window() const {
    base::IdRuns ids;
    std::size_t left = kWindow;
    for (auto it = sealed_.rbegin(); it != sealed_.rend() && left > 0; ++it, --left) {
      ids = ids.unite(it->second.chunks);
    }
    return ids;
  }

  [[nodiscard]] std::string snapshot_of(std::uint32_t number) const {
    return "/s/" + store::snapshot_name(static_cast<VersionNumber>(number));
  }

  std::unique_ptr<NeighbourIndex> load(VersionNumber own) {
    auto index = std::make_unique<NeighbourIndex>(window(), own,
                                                  IndexStorage{folder_, &store_, kMemoryBytes});
    std::vector<RunRef> named;
    if (!sealed_.empty()) {
      const auto number = sealed_.rbegin()->first;
      const auto bytes = files_->read_file(snapshot_of(number), 1U << 20);
      if (bytes) {
        auto runs = decode_snapshot(*bytes, kHistorySeries, static_cast<VersionNumber>(number));
        if (runs) named = *runs;
      }
    }
    remove_other_runs(named);
    index->open_runs(named);
    const auto missing = index->missing();
    for (const auto& run : missing.runs()) {
      for (std::uint32_t i = 0; i < run.count; ++i) {
        const auto id = run.first.plus(i);
        const auto fingerprint = random_fingerprint(store_.content_of(id));
        if (!index->find_one(fingerprint)) index->insert(fingerprint, id);
      }
    }
    index->note_covered(missing);
    return index;
  }

  void remove_other_runs(const std::vector<RunRef>& named) {
    const auto names = *files_->list("/s");
    for (const auto& name : names) {
      const auto number = store::parse_index_run_name(name);
      const auto is_named = [&](const RunRef& run) { return run.number == *number; };
      if (number && std::ranges::none_of(named, is_named)) {
        ASSERT_TRUE(files_->remove("/s/" + name));
      }
    }
  }

  void write_version(bool crashes) {
    const auto number = next_++;
    const auto own = static_cast<VersionNumber>(number);
    const auto index = load(own);
    // A deletion hides some chunks.
    base::IdRuns hidden;
    if (random_() % 4 == 0 && index->base().size() != 0) {
      const auto first = index->base().select(random_() % index->base().size());
      hidden = base::IdRuns::from({{first, 1 + static_cast<std::uint32_t>(random_() % 200)}})
                   .intersect(index->base());
      index->retire(hidden);
    }
    const auto usable = index->base().subtract(hidden);
    // The oracle: the chunks of each content that the version may refer to.
    std::unordered_map<std::uint64_t, std::vector<ChunkId>> oracle;
    for (const auto& run : usable.runs()) {
      for (std::uint32_t i = 0; i < run.count; ++i) {
        oracle[store_.content_of(run.first.plus(i))].push_back(run.first.plus(i));
      }
    }
    std::set<std::uint64_t> hidden_contents;
    for (const auto& run : hidden.runs()) {
      for (std::uint32_t i = 0; i < run.count; ++i) {
        hidden_contents.insert(store_.content_of(run.first.plus(i)));
      }
    }
    // A file's chunks are mostly those of the version before, in their order.
    std::vector<base::IdRun> refers;
    std::uint32_t ordinal = 0;
    const std::uint64_t count = random_() % 4000;
    std::uint64_t content = random_() % 3000;
    for (std::uint64_t i = 0; i < count; ++i) {
      content = random_() % 20 == 0 ? random_() % 6000 : content + 1;
      const auto found = index->find_one(random_fingerprint(content));
      auto& known = oracle[content];
      ASSERT_TRUE(!found || !known.empty()) << "content " << content;
      ASSERT_TRUE(found || known.empty() || twice_.contains(content)) << "content " << content;
      if (found) {
        ASSERT_NE(std::ranges::find(known, *found), known.end());
        refers.push_back({*found, 1});
        continue;
      }
      const auto id = ChunkId::make(own, ordinal++);
      if (!known.empty() || hidden_contents.contains(content)) twice_.insert(content);
      store_.add(id, content);
      index->insert(random_fingerprint(content), id);
      known.push_back(id);
      refers.push_back({id, 1});
    }
    const Version version{base::IdRuns::from(std::move(refers))};
    auto next_window = sealed_;
    next_window[number] = version;
    std::swap(next_window, sealed_);
    const auto live = window();
    std::swap(next_window, sealed_);
    auto runs = index->save(live);
    ASSERT_TRUE(runs) << runs.error().message();
    if (crashes && random_() % 2 == 0) return;  // The runs are written, the snapshot is not.
    ASSERT_TRUE(
        files_->write_file_atomically("/s", store::snapshot_name(own),
                                      base::as_bytes(encode_snapshot(kHistorySeries, own, *runs))));
    if (crashes) return;  // The snapshot is written, the version is not sealed.
    sealed_[number] = version;
    remove_other_runs(*runs);
    ASSERT_LE(runs->size(), 24U);
  }

  // Deletes a version. The index of the newest goes to the one that is the newest afterwards.
  void erase() {
    auto victim = sealed_.begin();
    std::advance(victim, static_cast<std::ptrdiff_t>(random_() % sealed_.size()));
    const auto number = victim->first;
    const bool newest = number == sealed_.rbegin()->first;
    sealed_.erase(victim);
    if (!newest || sealed_.empty()) return;
    const auto bytes = files_->read_file(snapshot_of(number), 1U << 20);
    if (!bytes) return;
    const auto runs = decode_snapshot(*bytes, kHistorySeries, static_cast<VersionNumber>(number));
    if (!runs) return;
    const auto heir = static_cast<VersionNumber>(sealed_.rbegin()->first);
    ASSERT_TRUE(files_->write_file_atomically(
        "/s", store::snapshot_name(heir),
        base::as_bytes(encode_snapshot(kHistorySeries, heir, *runs))));
  }

  // Removes a file, cuts it, or flips bytes of it.
  void damage() { test::damage_a_file(*files_, "/s", random_); }

  std::mt19937_64 random_;
  const std::unique_ptr<io::FileSystem> files_ = test::memory_files();
  const RunFolder folder_ = test_folder(*files_, kHistorySeries);
  Store store_;
  std::map<std::uint32_t, Version> sealed_;
  // Contents that were stored again while an older chunk was in the window. The index keeps the
  // newer chunk only, and does not find the content once that one has left the window.
  std::set<std::uint64_t> twice_;
  std::uint32_t next_ = 1;
};

TEST(IndexHistoryTest, RandomHistoriesAgreeWithAMap) {
  base::set_log_level(base::LogLevel::kError);  // Damage is reported as warnings.
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    History history(seed);
    for (int i = 0; i < 14; ++i) {
      history.step();
      ASSERT_FALSE(testing::Test::HasFatalFailure()) << "seed " << seed << ", step " << i;
    }
  }
  base::set_log_level(base::LogLevel::kWarning);
}

class IndexFilesTest : public testing::Test {
 protected:
  static constexpr VersionNumber kOld{1};
  static constexpr VersionNumber kNew{2};
  static constexpr std::uint32_t kChunks = 20000;

  IndexStorage storage(std::size_t bytes = kMemoryBytes) { return {folder_, &store_, bytes}; }

  // Stores the chunks of a version and returns the runs of its index.
  std::vector<RunRef> first_version() {
    NeighbourIndex index({}, kOld, storage());
    for (std::uint32_t i = 0; i < kChunks; ++i) {
      store_.add(ChunkId::make(kOld, i), i);
      index.insert(random_fingerprint(i), ChunkId::make(kOld, i));
    }
    return *index.save(chunks_);
  }

  const base::IdRuns chunks_ = base::IdRuns::from({{ChunkId::make(kOld, 0), kChunks}});
  const std::unique_ptr<io::FileSystem> files_ = test::memory_files();
  const RunFolder folder_ = test_folder(*files_, kHistorySeries);
  Store store_;
};

TEST_F(IndexFilesTest, ChunksInOrderCostOneLookupOnDiskPerContainer) {
  const auto runs = first_version();
  NeighbourIndex index(chunks_, kNew, storage(1U << 20));
  index.open_runs(runs);
  EXPECT_EQ(index.blocks_read(), 0U);
  for (std::uint32_t i = 0; i < kChunks; ++i) {
    ASSERT_EQ(index.find_one(random_fingerprint(i)), ChunkId::make(kOld, i));
  }
  EXPECT_EQ(store_.containers_read, (kChunks + kContainerChunks - 1) / kContainerChunks);
  EXPECT_LE(index.blocks_read(), 3 * runs.size() * store_.containers_read);
}

TEST_F(IndexFilesTest, RunThatNamesAnotherContentIsRebuilt) {
  const auto runs = first_version();
  store_.add(ChunkId::make(kOld, 77), 1000000);  // As if the number had been given twice.
  NeighbourIndex index(chunks_, kNew, storage());
  index.open_runs(runs);
  base::set_log_level(base::LogLevel::kError);
  EXPECT_EQ(index.find_one(random_fingerprint(77)), std::nullopt);
  base::set_log_level(base::LogLevel::kWarning);
  EXPECT_EQ(index.find_one(random_fingerprint(1000000)), ChunkId::make(kOld, 77));
  EXPECT_EQ(index.find_one(random_fingerprint(78)), ChunkId::make(kOld, 78));
  EXPECT_EQ(index.missing().size(), 0U);
}

TEST_F(IndexFilesTest, DamagedBlocksCostNoDeduplication) {
  const auto runs = first_version();
  for (const RunRef& run : runs) {
    const auto path = folder_.path_of(run.number);
    const auto file = std::move(*files_->open(path, io::OpenMode::kReadWrite));
    for (std::uint64_t at = kBlockBytes; at + kBlockBytes < *file->size(); at += 3 * kBlockBytes) {
      const auto byte = std::byte{0x5a};
      ASSERT_TRUE(file->write_at(at + 7, {&byte, 1}));
    }
  }
  NeighbourIndex index(chunks_, kNew, storage());
  index.open_runs(runs);
  base::set_log_level(base::LogLevel::kError);
  for (std::uint32_t i = 0; i < kChunks; ++i) {
    ASSERT_EQ(index.find_one(random_fingerprint(i)), ChunkId::make(kOld, i));
  }
  base::set_log_level(base::LogLevel::kWarning);
  const auto saved = *index.save(chunks_);
  for (const RunRef& run : saved) ASSERT_TRUE((*IndexRun::open(folder_, run))->verify());
}

TEST_F(IndexFilesTest, OwnChunksOfOlderRunsAreNotTrusted) {
  const auto runs = first_version();
  NeighbourIndex again({}, kOld, storage());
  again.open_runs(runs);
  EXPECT_EQ(again.find_one(random_fingerprint(5)), std::nullopt);
}

TEST(IndexFullDiskTest, SealNeedsRoomForItsOwnEntriesOnly) {
  test::FaultyFileSystem files(test::memory_files());
  const auto folder = test_folder(files, kHistorySeries);
  Store store;
  std::vector<RunRef> runs;
  base::IdRuns live;
  for (std::uint32_t version = 1; version <= 4; ++version) {
    const VersionNumber own{version};
    NeighbourIndex index(live, own, IndexStorage{folder, &store, kMemoryBytes});
    index.open_runs(runs);
    for (std::uint32_t i = 0; i < 100; ++i) {
      store.add(ChunkId::make(own, i), 1000 * version + i);
      index.insert(random_fingerprint(1000 * version + i), ChunkId::make(own, i));
    }
    live = live.unite(base::IdRuns::from({{ChunkId::make(own, 0), 100}}));
    // The fourth run starts a merge, whose first write fails.
    if (version == 4) files.faults.writes_until_fault = 2;
    base::set_log_level(base::LogLevel::kError);
    const auto saved = index.save(live);
    base::set_log_level(base::LogLevel::kWarning);
    ASSERT_TRUE(saved) << saved.error().message();
    runs = *saved;
  }
  EXPECT_EQ(runs.size(), 4U);
  EXPECT_EQ(files.list("/s")->size(), 4U) << "an unfinished run takes space";
  NeighbourIndex index(live, VersionNumber{5}, IndexStorage{folder, &store, kMemoryBytes});
  index.open_runs(runs);
  EXPECT_EQ(index.find_one(random_fingerprint(4099)), ChunkId::make(VersionNumber{4}, 99));
  EXPECT_EQ(index.save(live)->size(), 1U);
}

TEST_F(IndexFilesTest, UnusedEntriesGoWithTheNextMerge) {
  const auto runs = first_version();
  const auto few = base::IdRuns::from({{ChunkId::make(kOld, 0), 100}});
  NeighbourIndex index(few, kNew, storage());
  index.open_runs(runs);
  const auto saved = *index.save(few);
  ASSERT_EQ(saved.size(), 1U);
  EXPECT_EQ(saved.front().entries, 100U);
}

}  // namespace
}  // namespace varve::index
