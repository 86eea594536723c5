// SPDX-License-Identifier: Apache-2.0
#include "maintain/place_chooser.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "maintain/container_verifier.h"

namespace varve::maintain {

namespace {

using catalog::LocationRecord;

std::uint64_t end_of(const LocationRecord& run) { return run.first.value + run.count; }

// Returns the numbers of the containers sharing a chunk with another container.
std::set<ContainerNumber> find_sharing(std::vector<LocationRecord> runs) {
  std::sort(runs.begin(), runs.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  std::set<ContainerNumber> sharing;
  const LocationRecord* farthest = nullptr;
  for (const auto& run : runs) {
    if (farthest != nullptr && run.first.value < end_of(*farthest)) {
      sharing.insert(run.container);
      sharing.insert(farthest->container);
    }
    if (farthest == nullptr || end_of(run) > end_of(*farthest)) farthest = &run;
  }
  return sharing;
}

/// The set of ids with a place.
class Placed {
 public:
  /// Adds a run. Returns the parts of the run that were not in the set.
  std::vector<base::IdRun> add(const base::IdRun& run) {
    std::vector<base::IdRun> fresh;
    std::uint64_t at = run.first.value;
    const std::uint64_t end = at + run.count;
    auto next = ends_.upper_bound(at);
    if (next != ends_.begin()) at = std::max(at, std::prev(next)->second);
    while (at < end) {
      const std::uint64_t stop = next == ends_.end() ? end : std::min(end, next->first);
      if (stop > at) {
        fresh.push_back({ChunkId{at}, static_cast<std::uint32_t>(stop - at)});
        ends_.emplace(at, stop);
      }
      if (next == ends_.end() || next->first >= end) break;
      at = next->second;
      ++next;
    }
    return fresh;
  }

 private:
  std::map<std::uint64_t, std::uint64_t> ends_;  // Ends of disjoint ranges, by start.
};

/// A container with shared chunks, and the result of the container's verification.
struct Shared {
  const FoundContainer* found = nullptr;
  ContainerVerdict verdict;
  base::IdRuns bad;
};

void take(const Shared& from, const base::IdRuns& wanted, const LocationRecord& run, Placed& placed,
          std::vector<LocationRecord>& out) {
  const auto own = base::IdRuns::from({{run.first, run.count}}).intersect(wanted);
  for (const auto& part : own.runs()) {
    for (const auto& fresh : placed.add(part)) {
      out.push_back(part_of(run, fresh, *from.verdict.header));
    }
  }
}

}  // namespace

LocationRecord part_of(const LocationRecord& run, const base::IdRun& part,
                       const format::ContainerHeader& header) {
  const auto skip = static_cast<std::uint32_t>(part.first.value - run.first.value);
  LocationRecord record{part.first, part.count, 0, run.container, run.index + skip};
  for (std::uint32_t i = 0; i < part.count; ++i) {
    record.raw_bytes += header.chunks[record.index + i].raw_bytes;
  }
  return record;
}

std::vector<LocationRecord> choose_places(const format::DataCodecs& codecs,
                                          store::SegmentStore& store, StoreId store_id,
                                          const std::vector<FoundContainer>& containers) {
  std::vector<LocationRecord> all;
  for (const auto& found : containers) all.insert(all.end(), found.runs.begin(), found.runs.end());
  const auto sharing = find_sharing(all);
  std::erase_if(all, [&](const auto& run) { return sharing.contains(run.container); });

  store::SegmentReader reader(store, codecs.frames().keys());
  std::map<ContainerNumber, Shared, std::greater<>> shared;  // Newest first.
  for (const auto& found : containers) {
    if (!sharing.contains(found.record.number)) continue;
    Shared one;
    one.found = &found;
    one.verdict = verify_container(codecs, reader, store_id, found.record, VerifyLevel::kChunks);
    if (!one.verdict.header) continue;
    std::vector<base::IdRun> bad;
    for (const auto& fault : one.verdict.faults) {
      bad.insert(bad.end(), fault.chunks.begin(), fault.chunks.end());
    }
    one.bad = base::IdRuns::from(std::move(bad));
    shared.emplace(found.record.number, std::move(one));
  }
  Placed placed;
  for (const bool good : {true, false}) {
    for (const auto& entry : shared) {
      const auto& one = entry.second;
      for (const auto& run : one.found->runs) {
        const auto own = base::IdRuns::from({{run.first, run.count}});
        take(one, good ? own.subtract(one.bad) : one.bad, run, placed, all);
      }
    }
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return all;
}

PlaceCutter::PlaceCutter(store::SegmentStore& store, const format::ContainerKeys* keys,
                         StoreId store_id, const ContainerScan& scan)
    : reader_(store, keys), store_id_(store_id) {
  for (const auto& found : scan.containers) records_[found.record.number] = &found.record;
}

std::vector<LocationRecord> PlaceCutter::cut(const LocationRecord& place,
                                             const base::IdRuns& used) {
  if (!header_ || header_->number != place.container) {
    header_.reset();
    auto read = reader_.read_header(store_id_, *records_.at(place.container));
    if (!read || read->chunks.size() < std::size_t{place.index} + place.count) return {place};
    header_ = std::move(*read);
  }
  std::vector<LocationRecord> parts;
  for (const auto& run : used.runs()) parts.push_back(part_of(place, run, *header_));
  return parts;
}

}  // namespace varve::maintain
