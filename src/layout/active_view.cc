// SPDX-License-Identifier: Apache-2.0
// The state of the active set. Reads the records of its files and chunks, and of recent versions.
#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "catalog/location_table.h"
#include "catalog/series_catalog.h"
#include "layout/arranger.h"
#include "layout/file_chunks.h"
#include "layout/version_walk.h"

namespace varve::layout {

namespace {

// A file aside becomes a volume if at most this part is dead; else the chunks are copied.
constexpr std::uint64_t kVolumeDeadParts = 8;
// The same for a file of several deaths: a copy would divide the deaths again.
constexpr std::uint64_t kJoinedDeadParts = 2;

using catalog::SegmentRecord;
using catalog::SegmentRole;

/// The chunks located in a file.
struct FileChunks {
  base::IdRuns ids;
  std::uint64_t gap_bytes = 0;  // See ActiveState::gap_bytes.
};

/// A location run of a container.
struct Place {
  std::uint32_t index = 0;
  std::uint32_t count = 0;
};

// Returns the cost of the gaps between the runs of a container. Estimates a gap's length by the
// container's average chunk.
std::uint64_t gaps_between(const format::ContainerRecord& container, std::vector<Place>& places) {
  std::sort(places.begin(), places.end(),
            [](const Place& a, const Place& b) { return a.index < b.index; });
  std::uint64_t bytes = 0;
  for (std::size_t i = 1; i < places.size(); ++i) {
    const std::uint64_t chunks = places[i].index - (places[i - 1].index + places[i - 1].count);
    bytes += gap_cost(chunks * container.raw_bytes / std::max(container.chunks, 1U));
  }
  return bytes;
}

/// Finds the chunks located in some files, by sets of candidate chunks. The files' records tell
/// when all chunks are found, so the search reads little else.
class ChunkSearch {
 public:
  ChunkSearch(const meta::Txn& txn, StoreId store) : txn_(txn), store_(store) {}

  /// Adds a file. Call add() before the first look_for().
  Result<void> add(const SegmentRecord& file) {
    files_[file.segment];
    return for_each_container_in(txn_, store_, file,
                                 [&](const format::ContainerRecord& record) -> Result<bool> {
                                   holders_[record.number].record = record;
                                   missing_bytes_ += record.live_bytes;
                                   return true;
                                 });
  }
  [[nodiscard]] bool complete() const { return missing_bytes_ == 0; }

  /// Searches for `chunks`, except chunks of earlier calls.
  Result<void> look_for(const base::IdRuns& chunks) {
    const auto fresh = chunks.subtract(asked_);
    asked_ = asked_.unite(fresh);
    return catalog::for_each_location_of(
        txn_, store_, fresh,
        [&](const catalog::LocationRecord& at) -> Result<bool> { return note(at); });
  }
  Result<void> look_everywhere() {
    return catalog::for_each_location(
        txn_, store_, ChunkId{},
        [&](const catalog::LocationRecord& at) -> Result<bool> { return note(at); });
  }

  /// Returns the contents of each file. Call take_found() once.
  std::map<SegmentNumber, FileChunks> take_found() {
    std::map<SegmentNumber, FileChunks> found;
    for (auto& [segment, runs] : files_) found[segment].ids = base::IdRuns::from(std::move(runs));
    for (auto& entry : holders_) {
      auto& holder = entry.second;
      found[holder.record.segment].gap_bytes += gaps_between(holder.record, holder.places);
    }
    return found;
  }

 private:
  struct Holder {
    format::ContainerRecord record;
    std::vector<Place> places;
  };

  // Returns false if nothing is missing any more.
  bool note(const catalog::LocationRecord& at) {
    const auto holder = holders_.find(at.container);
    if (holder == holders_.end() || !noted_.insert(at.first.value).second) return true;
    holder->second.places.push_back({at.index, at.count});
    files_[holder->second.record.segment].push_back({at.first, at.count});
    missing_bytes_ -= std::min(missing_bytes_, at.raw_bytes);
    return missing_bytes_ != 0;
  }

  const meta::Txn& txn_;
  const StoreId store_;
  std::unordered_map<ContainerNumber, Holder> holders_;
  std::map<SegmentNumber, std::vector<base::IdRun>> files_;
  std::unordered_set<std::uint64_t> noted_;
  std::uint64_t missing_bytes_ = 0;  // Live raw bytes not found yet.
  base::IdRuns asked_;
};

// Most chunks of the active set are used by the newest version. The remaining chunks belong to
// versions since the last arranging, or to no version: then a recent version stored them.
Result<void> find_active_chunks(const meta::Txn& txn, SeriesId series,
                                const std::vector<LiveVersion>& recent, const base::IdRuns& kept,
                                ChunkSearch& search) {
  if (!search.complete()) VARVE_TRY(search.look_for(kept));
  if (search.complete()) return {};
  std::vector<base::IdRun> births;
  for (const auto& version : recent) {
    births.push_back({ChunkId::make(version.number, 0), 0xffffffffU});
    if (version.sealed) continue;
    VARVE_TRY_ASSIGN(const auto maybe, protected_chunks(txn, series, version));
    births.insert(births.end(), maybe.runs().begin(), maybe.runs().end());
  }
  VARVE_TRY(search.look_for(base::IdRuns::from(std::move(births))));
  VersionWalk walk(txn, series);
  while (!search.complete()) {
    VARVE_TRY_ASSIGN(const auto version, walk.next());
    if (!version) return search.look_everywhere();
    if (!version->sealed) continue;
    VARVE_TRY_ASSIGN(const auto chunks, catalog::version_chunks(txn, series, version->number));
    VARVE_TRY(search.look_for(chunks));
  }
  return {};
}

base::IdRuns united(const std::map<SegmentNumber, FileChunks>& chunks) {
  std::vector<base::IdRun> runs;
  for (const auto& entry : chunks) {
    const auto& its = entry.second.ids.runs();
    runs.insert(runs.end(), its.begin(), its.end());
  }
  return base::IdRuns::from(std::move(runs));
}

// Counts the sealed versions since the base was written.
Result<std::uint32_t> versions_behind(const meta::Txn& txn, SeriesId series,
                                      const std::vector<SegmentRecord>& files) {
  VersionNumber base{};
  for (const auto& file : files) {
    if (file.role == SegmentRole::kBase) base = std::max(base, file.version);
  }
  std::uint32_t behind = 0;
  VersionWalk walk(txn, series);
  while (true) {
    VARVE_TRY_ASSIGN(const auto version, walk.next());
    if (!version || version->number <= base) return behind;
    if (version->sealed) ++behind;
  }
}

/// The chunks of the active set lost by the newest version.
struct Leaving {
  std::map<VersionNumber, base::IdRuns> deaths;
  base::IdRuns lost;    // Chunks to which an open version may refer.
  base::IdRuns unused;  // Chunks to which no version refers.
  VersionNumber window_start{};
};

// Decides about a file aside. Returns the chunks of the file to leave in place. `joins`: whether
// chunks of several deaths are compressed together (docs/decisions/163).
base::IdRuns stay_aside(const SegmentRecord& file, const base::IdRuns& chunks,
                        const Leaving& leaving, bool joins, ArrangeView& view) {
  if (chunks.intersect(leaving.lost).size() != 0) return chunks;
  VersionNumber death{};
  VersionNumber last{};
  base::IdRuns most;
  base::IdRuns all;
  for (const auto& [version, dying] : leaving.deaths) {
    auto its = chunks.intersect(dying);
    if (its.size() == 0) continue;
    last = version;
    all = all.unite(its);
    if (its.size() <= most.size()) continue;
    most = std::move(its);
    death = version;
  }
  const std::uint64_t dead = file.raw_bytes - file.live_bytes;
  // The files of a joined death stay together, also those without a chunk of the highest death.
  const auto joined = std::max(last, file.version);
  const bool is_joined = joins && all.size() != 0 && (most.size() != all.size() || joined != last);
  if (is_joined && dead * kJoinedDeadParts <= file.raw_bytes) {
    if (all.size() == chunks.size()) view.settled.emplace(file.segment, joined);
    return all.unite(chunks.intersect(leaving.unused));
  }
  if (dead * kVolumeDeadParts > file.raw_bytes) {
    // The next version may take more chunks back. After the window, the rest is copied once.
    if (death < leaving.window_start) return {};
  } else if (most.size() == chunks.size()) {
    view.settled.emplace(file.segment, death);
  }
  // Chunks of further deaths depart, and returned chunks move, before the file is settled.
  return most.unite(chunks.intersect(leaving.unused));
}

}  // namespace

Result<ArrangeView> view_active_set(const meta::Txn& txn, SeriesId series, StoreId store,
                                    const ArrangeSettings& settings, const base::IdRuns& excluded) {
  ArrangeView view;
  // The window, and at least the newest main version.
  VARVE_TRY_ASSIGN(const auto versions,
                   recent_versions(txn, series, std::max(settings.window, 1U)));
  std::set<VersionNumber> open;
  for (const auto& version : versions) {
    if (version.sealed) view.state.newest = version.number;
    if (!version.sealed) open.insert(version.number);
  }
  VARVE_TRY_ASSIGN(const auto segments, catalog::list_segments(txn, store));
  VARVE_TRY_ASSIGN(const auto kept, window_chunks(txn, series, versions, 1, false));
  ChunkSearch search(txn, store);
  for (const auto& segment : segments) {
    if (segment.active() && !open.contains(segment.version)) VARVE_TRY(search.add(segment));
  }
  VARVE_TRY(find_active_chunks(txn, series, versions, kept, search));
  const auto chunks_of = search.take_found();
  base::IdRuns rest = united(chunks_of).subtract(excluded).subtract(kept);
  Leaving leaving;
  leaving.window_start = window_start(versions, settings.window);
  for (const auto& version : versions) {
    if (version.sealed || rest.size() == 0) continue;
    VARVE_TRY_ASSIGN(const auto maybe, protected_chunks(txn, series, version));
    leaving.lost = leaving.lost.unite(rest.intersect(maybe));
  }
  VersionWalk older(txn, series);
  while (rest.size() != 0) {
    VARVE_TRY_ASSIGN(const auto version, older.next());
    if (!version) break;
    if (!version->sealed) continue;
    VARVE_TRY_ASSIGN(const auto chunks, catalog::version_chunks(txn, series, version->number));
    auto dying = rest.intersect(chunks);
    if (dying.size() == 0) continue;
    rest = rest.subtract(dying);
    leaving.deaths.emplace(version->number, std::move(dying));
  }
  leaving.unused = rest.subtract(leaving.lost);
  view.unused = leaving.unused;
  base::IdRuns stay;
  for (const auto& segment : segments) {
    const auto found = chunks_of.find(segment.segment);
    if (found == chunks_of.end()) continue;
    const auto& [chunks, gap_bytes] = found->second;
    view.chunks_of.emplace(segment.segment, chunks.subtract(excluded).subtract(leaving.unused));
    const auto used = is_volume(segment.segment) ? chunks.intersect(kept) : base::IdRuns();
    if (!is_volume(segment.segment) || used.size() * 2 > chunks.size()) {
      view.state.files.push_back(segment);
      if (gap_bytes != 0) view.state.gap_bytes.emplace(segment.segment, gap_bytes);
      continue;
    }
    view.files_aside.push_back(segment);
    view.returned = view.returned.unite(used.subtract(excluded));
    stay = stay.unite(stay_aside(segment, chunks, leaving, settings.delta != 0, view));
  }
  VARVE_TRY_ASSIGN(const auto counters, catalog::find_counters(txn, store));
  view.state.next_container = counters.next_container;
  // Only the batched policy needs versions_behind, and the base may be old.
  if (settings.policy == ArrangePolicyKind::kBatched) {
    VARVE_TRY_ASSIGN(view.state.versions_behind, versions_behind(txn, series, view.state.files));
  }
  for (const auto& [death, all] : leaving.deaths) {
    const auto dying = all.subtract(stay);
    auto wait = dying.intersect(leaving.lost);
    auto depart = dying.subtract(leaving.lost);
    if (wait.size() != 0) view.aside.emplace(death, std::move(wait));
    if (depart.size() == 0) continue;
    VARVE_TRY_ASSIGN(const auto bytes, estimate_bytes(txn, store, depart));
    view.state.departing_bytes += bytes;
    view.departing.emplace(death, std::move(depart));
  }
  return view;
}

}  // namespace varve::layout
