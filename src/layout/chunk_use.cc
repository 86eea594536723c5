// SPDX-License-Identifier: Apache-2.0
#include "layout/chunk_use.h"

#include <algorithm>
#include <utility>

#include "catalog/location_table.h"

namespace varve::layout {

namespace {

/// Measures a sequence of chunk sets, each by the difference from the previous set.
class RunningSize {
 public:
  RunningSize(const meta::Txn& txn, StoreId store) : txn_(txn), store_(store) {}

  /// Returns the raw size of `chunks`. `changed` has the chunks that are in only one of `chunks`
  /// and `before`.
  Result<std::uint64_t> next(const base::IdRuns& chunks, const base::IdRuns& before,
                             const base::IdRuns& changed) {
    VARVE_TRY(catalog::for_each_location_of(
        txn_, store_, changed, [&](const catalog::LocationRecord& record) -> Result<bool> {
          bytes_ += catalog::estimate_part(record, chunks);  // As estimate_bytes().
          bytes_ -= catalog::estimate_part(record, before);
          return true;
        }));
    return bytes_;
  }

 private:
  const meta::Txn& txn_;
  const StoreId store_;
  std::uint64_t bytes_ = 0;
};

// Returns the ids contained in at least two runs.
base::IdRuns repeated(std::vector<base::IdRun> runs) {
  std::sort(runs.begin(), runs.end(),
            [](const base::IdRun& a, const base::IdRun& b) { return a.first < b.first; });
  std::vector<base::IdRun> again;
  std::uint64_t seen_to = 0;
  for (const auto& run : runs) {
    const std::uint64_t end = run.first.value + run.count;
    const std::uint64_t common = std::min(end, seen_to);
    if (run.first.value < common) {
      again.push_back({run.first, static_cast<std::uint32_t>(common - run.first.value)});
    }
    seen_to = std::max(seen_to, end);
  }
  return base::IdRuns::from(std::move(again));
}

}  // namespace

// A chunk begins at a version that refers to the chunk and whose predecessor does not. Only a
// single version refers to a chunk if the chunk begins once, and the next version does not refer to
// it.
Result<std::vector<ChunkUse>> measure_chunk_use(const meta::Txn& txn, SeriesId series,
                                                StoreId store,
                                                const std::vector<LiveVersion>& versions,
                                                const OpenHold& hold,
                                                std::optional<VersionNumber> only) {
  std::vector<ChunkUse> all;
  std::vector<base::IdRun> beginnings;
  RunningSize size(txn, store);
  base::IdRuns previous;
  ChunkUse* last = nullptr;  // The use of the previous version, unless left out.
  all.reserve(versions.size());
  for (const auto& version : versions) {
    VARVE_TRY_ASSIGN(auto chunks, held_chunks(txn, series, version, hold));
    auto begun = chunks.subtract(previous);
    if (last != nullptr) last->lone = last->lone.subtract(chunks);
    last = nullptr;
    beginnings.insert(beginnings.end(), begun.runs().begin(), begun.runs().end());
    std::uint64_t raw_bytes = 0;
    if (!only) {
      const auto changed = begun.unite(previous.subtract(chunks));
      VARVE_TRY_ASSIGN(raw_bytes, size.next(chunks, previous, changed));
    } else if (*only == version.number) {
      VARVE_TRY_ASSIGN(raw_bytes, estimate_bytes(txn, store, chunks));
    }
    if (version.sealed && only.value_or(version.number) == version.number) {
      last = &all.emplace_back(ChunkUse{version.number, raw_bytes, std::move(begun)});
    }
    previous = std::move(chunks);
  }
  const auto again = repeated(std::move(beginnings));
  for (auto& use : all) use.lone = use.lone.subtract(again);
  return all;
}

}  // namespace varve::layout
