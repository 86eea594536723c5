// SPDX-License-Identifier: Apache-2.0
#include "layout/duplicate_search.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "base/coding.h"
#include "catalog/location_table.h"

namespace varve::layout {

namespace {
constexpr std::size_t kSegmentMax = 1U << 16;
}  // namespace

Result<std::optional<Duplicates>> DuplicateSearch::run() {
  VARVE_TRY(list_places());
  // Sorting by fingerprint makes the copies of a chunk neighbours; sorting the copies by id makes
  // runs.
  const auto buckets = store::RecordBuckets::buckets_for(located_.size());
  store::RecordBuckets copies(parts_.folder, buckets, 0);
  {
    store::RecordBuckets fingerprints(parts_.folder, buckets, buckets);
    VARVE_TRY_ASSIGN(bool more, read_tables(fingerprints));
    if (more) {
      VARVE_TRY_ASSIGN(more, find_copies(fingerprints, copies));
    }
    if (!more) return std::optional<Duplicates>();
    found_.bytes_sorted += fingerprints.bytes_passed();
  }
  VARVE_TRY_ASSIGN(const bool more, choose_runs(copies));
  if (!more) return std::optional<Duplicates>();
  found_.bytes_sorted += copies.bytes_passed();
  found_.damaged = std::move(damaged_);
  return std::optional(std::move(found_));
}

void DuplicateSearch::pass(std::uint64_t bytes) {
  found_.bytes_read += bytes;
  if (parts_.pass) parts_.pass(bytes);
}

Result<void> DuplicateSearch::list_places() {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts_.catalog));
  std::vector<base::IdRun> runs;
  std::set<ContainerNumber> containers;
  VARVE_TRY(catalog::for_each_location(
      txn, kPoolStore, kFirstPoolId, [&](const catalog::LocationRecord& at) -> Result<bool> {
        if (at.first.birth() >= parts_.births_end) return false;
        const base::IdRun here{at.first, at.count};
        const bool is_lost = parts_.lost.overlaps(here) &&
                             base::IdRuns::from({here}).subtract(parts_.lost).size() == 0;
        if (is_lost) return true;
        places_.push_back({at.first, at.count, at.container});
        runs.push_back(here);
        containers.insert(at.container);
        return true;
      }));
  located_ = base::IdRuns::from(std::move(runs));
  containers_.assign(containers.begin(), containers.end());
  return {};
}

Result<bool> DuplicateSearch::read_tables(store::RecordBuckets& fingerprints) {
  auto& chunks = parts_.pool->chunks();
  const std::uint64_t buckets = fingerprints.size();
  for (const auto number : containers_) {
    if (is_stopped()) return false;
    const auto header = chunks.header(number);
    if (!header) {
      // The container was freed meanwhile, or is damaged: its chunks stay unchanged.
      if (header.error().code() != ErrorCode::kStale) {
        chunks.log_damage(number, header.error());
        damaged_.insert(number);
      }
      continue;
    }
    for (const auto& chunk : (*header)->chunks) {
      const auto place = std::partition_point(
          places_.begin(), places_.end(),
          [&](const Place& one) { return one.first.value + one.count <= chunk.id.value; });
      const bool is_here =
          place != places_.end() && place->first <= chunk.id && place->container == number;
      if (!is_here || parts_.lost.contains(chunk.id)) continue;
      const auto a = base::load_le<std::uint64_t>(chunk.fingerprint.data());
      const auto b = base::load_le<std::uint64_t>(chunk.fingerprint.data() + 8);
      VARVE_TRY(fingerprints.add(static_cast<std::uint32_t>((a >> 32) * buckets >> 32),
                                 {a, b, chunk.id.value}));
      ++found_.chunks_compared;
    }
    pass((*header)->header_bytes);
  }
  return true;
}

Result<bool> DuplicateSearch::find_copies(store::RecordBuckets& fingerprints,
                                          store::RecordBuckets& copies) {
  for (std::uint32_t bucket = 0; bucket < fingerprints.size(); ++bucket) {
    if (is_stopped()) return false;
    VARVE_TRY_ASSIGN(const auto records, fingerprints.take(bucket));
    for (auto first = records.begin(); first != records.end();) {
      const auto last = std::find_if(first, records.end(), [&](const store::SortRecord& one) {
        return one.a != first->a || one.b != first->b;
      });
      VARVE_TRY(add_group({first, last}, copies));
      first = last;
    }
  }
  return true;
}

Result<void> DuplicateSearch::add_group(std::span<const store::SortRecord> group,
                                        store::RecordBuckets& copies) {
  const auto per_bucket = located_.size() / copies.size() + 1;
  for (std::size_t i = 1; i < group.size(); ++i) {
    const ChunkId id{group[i].c};
    if (parts_.kept.contains(id)) continue;
    const auto bucket = static_cast<std::uint32_t>(located_.count_below(id.value) / per_bucket);
    VARVE_TRY(copies.add(bucket, {id.value, group[0].c, group[i - 1].c}));
  }
  return {};
}

Result<bool> DuplicateSearch::choose_runs(store::RecordBuckets& copies) {
  of_copy_.emplace(parts_.pool->chunks(), *parts_.fingerprinter, damaged_);
  of_target_.emplace(parts_.pool->chunks(), *parts_.fingerprinter, damaged_);
  for (std::uint32_t bucket = 0; bucket < copies.size() && found_.all; ++bucket) {
    if (is_stopped()) return false;
    VARVE_TRY_ASSIGN(const auto records, copies.take(bucket));
    for (const auto& record : records) {
      const Copy copy{ChunkId{record.a}, ChunkId{record.b}, ChunkId{record.c}};
      const bool follows = !segment_.empty() && segment_.back().id.plus(1) == copy.id &&
                           segment_.back().id.birth() == copy.id.birth() &&
                           segment_.size() < kSegmentMax;
      if (!follows) choose_in_segment();
      segment_.push_back(copy);
    }
  }
  choose_in_segment();
  return true;
}

// Goes through consecutive chunks with copies. At each place, the longer run of targets wins: the
// run from the oldest copy, or the run from the previous copy.
void DuplicateSearch::choose_in_segment() {
  const auto run_min = segment_.empty() ? 0 : parts_.run_chunks_min(segment_.front().id.birth());
  for (std::size_t at = 0; at < segment_.size();) {
    ChunkId target = segment_[at].oldest;
    auto count = chain(at, target);
    const auto other = kept_copy(at, segment_[at].id);
    if (other && *other != target) {
      const auto length = chain(at, *other);
      if (length > count) {
        count = length;
        target = *other;
      }
    }
    if (count >= run_min) {
      if (found_.runs.size() == parts_.runs_max) {
        found_.all = false;
        break;
      }
      found_.runs.push_back({segment_[at].id, count, target});
    }
    at += count;
  }
  segment_.clear();
}

// Returns the number of chunks from `at` on with consecutive copies from `target` on.
std::uint32_t DuplicateSearch::chain(std::size_t at, ChunkId target) {
  std::uint32_t count = 1;
  for (; at + count < segment_.size(); ++count) {
    const auto next = target.plus(count);
    if (next.birth() != target.birth()) break;
    if (segment_[at + count].oldest == next) continue;
    if (kept_copy(at + count, segment_[at].id) == next) continue;
    // A frequent content has further copies, neither oldest nor previous.
    if (!is_kept(next, segment_[at].id) || !is_same(segment_[at + count].id, next)) break;
  }
  return count;
}

// Returns whether a chunk is certain not to become an alias.
bool DuplicateSearch::is_kept(ChunkId id, ChunkId start) const {
  if (id >= start) return false;
  const auto after =
      std::upper_bound(found_.runs.begin(), found_.runs.end(), id,
                       [](ChunkId one, const format::AliasRun& run) { return one < run.first; });
  if (after == found_.runs.begin()) return true;
  const auto& run = *std::prev(after);
  return id.value - run.first.value >= run.count;
}

bool DuplicateSearch::is_same(ChunkId copy, ChunkId target) {
  if (!located_.contains(target)) return false;
  const auto one = of_copy_->find(copy);
  const auto other = of_target_->find(target);
  return one && other && one->chunk->fingerprint == other->chunk->fingerprint;
}

// Returns the chunk with the content of the previous copy, if certain not to become an alias:
// chunks from `start` on are not decided yet.
std::optional<ChunkId> DuplicateSearch::kept_copy(std::size_t at, ChunkId start) const {
  const auto copy = segment_[at].previous;
  if (copy >= start) return std::nullopt;
  const auto after =
      std::upper_bound(found_.runs.begin(), found_.runs.end(), copy,
                       [](ChunkId id, const format::AliasRun& run) { return id < run.first; });
  if (after == found_.runs.begin()) return copy;
  const auto& run = *std::prev(after);
  const auto skip = copy.value - run.first.value;
  return skip < run.count ? run.target.plus(skip) : copy;
}

}  // namespace varve::layout
