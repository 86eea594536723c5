// SPDX-License-Identifier: Apache-2.0
// Random histories of a pool's index, with crashes and damage, against a map from contents.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "contract/pool_index_subject.h"
#include "support/damage_file.h"
#include "support/pool_containers.h"
#include "support/sealed_memory.h"

namespace varve::index {
namespace {

constexpr std::size_t kHistoryMemoryBytes = 256U << 10;
constexpr std::uint64_t kContents = 3000;
// Contents from here on are never in the pool.
constexpr std::uint64_t kFirstElsewhere = 10000;
constexpr std::uint32_t kBirths = 3;

/// A pool, its index, and the answers that are right.
class PoolHistory {
 public:
  PoolHistory(const PoolIndexSubject& subject, std::uint64_t seed)
      : subject_(subject), random_(seed) {
    reopen();
  }

  void step() {
    const auto action = random_() % 24;
    if (action < 8) {
      place(false);
    } else if (action < 10) {
      place(true);
    } else if (action < 13) {
      mark();
    } else if (action < 15) {
      erase();
    } else if (action < 19) {
      ASSERT_TRUE(index_->save(containers_.live()));
      is_saved_ = true;
    } else if (action < 22) {
      reopen();
    } else if (action == 22) {
      damage();
      reopen();
    }
    for (int i = 0; i < 100; ++i) look_up(any_content());
  }

 private:
  struct Known {
    std::vector<ChunkId> ids;      // Stored copies, the one told last at the end.
    bool is_newest_sure = true;    // The index knows the last copy as the newest.
    bool is_found = false;         // The index has one of the copies.
    std::set<SeriesId> series;     // All that the index was told.
    bool is_marker_found = false;  // The index has a marker.
  };

  [[nodiscard]] std::uint64_t any_content() {
    return random_() % kContents + (random_() % 4 == 0 ? kFirstElsewhere : 0);
  }

  void reopen() {
    index_.reset();
    index_ = subject_.open(pool_index_folder(*files_, "/pool"), containers_, kHistoryMemoryBytes);
    if (!is_saved_) lose_order();
    is_saved_ = true;
    add_missing();
  }
  void add_missing() {
    const auto missing = index_->missing(containers_.live());
    if (missing.size() == 0) return;
    lose_order();
    index_->add_missing(missing);
    ASSERT_EQ(index_->missing(containers_.live()), base::IdRuns());
  }
  // The index may not know any more which copy is the newest, and may have lost markers.
  void lose_order() {
    for (auto& [content, known] : known_) {
      if (known.ids.size() > 1) known.is_newest_sure = false;
      known.is_marker_found = false;
    }
  }

  void place(bool again) {
    const auto birth = 1 + static_cast<std::uint32_t>(random_() % kBirths);
    std::vector<PlacedChunk> chunks;
    for (auto left = random_() % 300; left > 0; --left) {
      const std::uint64_t content = random_() % kContents;
      Known& known = known_[content];
      if (known.ids.empty() == again) continue;
      const ChunkId id = pool_id(birth, next_[birth]++);
      containers_.store(id, content);
      known.ids.push_back(id);
      known.is_newest_sure = known.is_found = true;
      chunks.push_back({random_fingerprint(content), id});
    }
    const StreamNumber stream{birth};
    if (again) {
      index_->replace(stream, chunks);
    } else {
      index_->placed(stream, chunks);
    }
    is_saved_ = false;
    for (const auto& [fingerprint, id] : chunks) {
      PoolHit hit;
      index_->lookup(stream, {&fingerprint, 1}, {&hit, 1});
      const auto& ids = known_[*containers_.content_of(id)].ids;
      if (!subject_.is_lossy) {
        ASSERT_EQ(hit.id, ids.back());
      } else if (hit.id) {
        ASSERT_TRUE(std::ranges::count(ids, *hit.id) != 0);
      }
    }
  }

  void mark() {
    const SeriesId series{1 + static_cast<std::uint32_t>(random_() % 3)};
    std::vector<Fingerprint> fingerprints;
    for (auto left = random_() % 100; left > 0; --left) {
      const std::uint64_t content = any_content();
      known_[content].series.insert(series);
      known_[content].is_marker_found = true;
      fingerprints.push_back(random_fingerprint(content));
    }
    index_->stored_in_series(StreamNumber{1}, series, fingerprints);
    is_saved_ = false;
  }

  void erase() {
    std::vector<base::IdRun> runs;
    for (int i = 0; i < 4; ++i) {
      const auto birth = 1 + static_cast<std::uint32_t>(random_() % kBirths);
      const auto container = static_cast<std::uint32_t>(random_() % (next_[birth] / 64 + 1));
      runs.push_back({pool_id(birth, container * 64), 64});
      next_[birth] = (next_[birth] + 63) / 64 * 64;  // The container gets no chunks any more.
    }
    const auto gone = base::IdRuns::from(std::move(runs));
    containers_.free(gone);
    const bool is_told = random_() % 4 != 0;
    if (is_told) index_->forget(gone);
    for (auto& [content, known] : known_) {
      if (known.ids.empty()) continue;
      const bool newest_goes = gone.contains(known.ids.back());
      const auto freed = std::erase_if(known.ids, [&](ChunkId id) { return gone.contains(id); });
      // The index may have known that copy only.
      if (newest_goes || (freed != 0 && !known.is_newest_sure)) {
        known.is_found = known.is_newest_sure = false;
      }
    }
    if (!is_told) reopen();  // As after a crash of the process that deleted.
  }

  // Removes a file, cuts it, or flips bytes of it.
  void damage() {
    lose_order();
    index_.reset();
    test::damage_a_file(*files_, "/pool", random_);
  }

  [[nodiscard]] PoolHit ask(std::uint64_t content) {
    const Fingerprint fingerprint = random_fingerprint(content);
    PoolHit hit;
    index_->lookup(StreamNumber{1}, {&fingerprint, 1}, {&hit, 1});
    return hit;
  }

  void look_up(std::uint64_t content) {
    const Known& known = known_[content];
    PoolHit hit = ask(content);
    const bool is_needed = known.is_found && !subject_.is_lossy;
    if (!hit.id && is_needed) {
      add_missing();  // The lookup found damage.
      hit = ask(content);
      ASSERT_TRUE(hit.id) << "content " << content;
    }
    if (hit.id) {
      ASSERT_EQ(containers_.content_of(*hit.id), content);
      ASSERT_FALSE(hit.elsewhere);
    } else if (hit.elsewhere) {
      ASSERT_TRUE(known.series.contains(*hit.elsewhere));
    } else if (content >= kFirstElsewhere && !subject_.is_lossy) {
      ASSERT_FALSE(known.is_marker_found) << "content " << content;
    }
  }

  const PoolIndexSubject& subject_;
  std::mt19937_64 random_;
  const std::unique_ptr<io::FileSystem> files_ = test::memory_files();
  PoolContainers containers_;
  std::unique_ptr<PoolIndex> index_;
  std::map<std::uint64_t, Known> known_;
  std::map<std::uint32_t, std::uint32_t> next_;
  bool is_saved_ = true;
};

class PoolIndexHistory : public testing::TestWithParam<PoolIndexSubject> {};

TEST_P(PoolIndexHistory, RandomHistoriesAgreeWithAMap) {
  base::set_log_level(base::LogLevel::kError);  // Damage is reported as warnings.
  for (std::uint64_t seed = 0; seed < 25; ++seed) {
    PoolHistory history(GetParam(), seed);
    for (int i = 0; i < 60; ++i) {
      history.step();
      ASSERT_FALSE(testing::Test::HasFatalFailure()) << "seed " << seed << ", step " << i;
    }
  }
  base::set_log_level(base::LogLevel::kWarning);
}

INSTANTIATE_TEST_SUITE_P(All, PoolIndexHistory, testing::ValuesIn(kPoolIndexSubjects),
                         [](const auto& subject) { return std::string(subject.param.name); });

}  // namespace
}  // namespace varve::index
