// SPDX-License-Identifier: Apache-2.0
#include "maintain/layout_checker.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "catalog/layout_records.h"
#include "catalog/location_table.h"
#include "maintain/owners.h"
#include "store/segment_files.h"

namespace varve::maintain {

namespace {

struct Holder {
  format::ContainerRecord record;
  std::uint64_t located = 0;
};

struct Sums {
  std::uint64_t raw = 0;
  std::uint64_t live = 0;
  std::uint64_t end = 0;
  std::uint32_t containers = 0;
  std::map<std::uint64_t, const format::ContainerRecord*> by_offset;
};

}  // namespace

Result<void> check_layout(const meta::Txn& txn, store::SegmentStore& store, StoreId store_id,
                          bool check_lengths, const LayoutDamage& damage) {
  std::map<ContainerNumber, Holder> holders;
  VARVE_TRY(catalog::for_each_container(txn, store_id,
                                        [&](const format::ContainerRecord& record) -> Result<bool> {
                                          holders[record.number].record = record;
                                          return true;
                                        }));
  std::uint64_t end = 0;
  VARVE_TRY(catalog::for_each_location(
      txn, store_id, ChunkId{}, [&](const catalog::LocationRecord& at) -> Result<bool> {
        const auto name = [&] {
          return fmt::format("the location of chunk {}.{}",
                             static_cast<std::uint32_t>(at.first.birth()), at.first.ordinal());
        };
        if (!may_hold(store_id, at.first)) {
          damage("", name() + " belongs to another store");
        }
        if (at.first.value < end) damage("", name() + " overlaps the one before");
        end = std::max(end, at.first.value + at.count);
        const auto holder = holders.find(at.container);
        if (holder == holders.end()) {
          damage("",
                 name() + fmt::format(" names container {}, which does not exist", at.container));
        } else {
          holder->second.located += at.raw_bytes;
        }
        return true;
      }));
  std::map<SegmentNumber, Sums> sums;
  for (const auto& [number, holder] : holders) {
    const auto& record = holder.record;
    if (!may_hold(store_id, number)) {
      damage("", fmt::format("container {} belongs to another store", number));
    }
    if (record.live_bytes != holder.located) {
      damage("", fmt::format("container {} should hold {} bytes that are in use, but has {}",
                             number, record.live_bytes, holder.located));
    }
    auto& sum = sums[record.segment];
    sum.raw += record.raw_bytes;
    sum.live += record.live_bytes;
    sum.end = std::max(sum.end, record.end());
    ++sum.containers;
    sum.by_offset[record.offset] = &record;
  }
  VARVE_TRY_ASSIGN(const auto segments, catalog::list_segments(txn, store_id));
  for (const auto& segment : segments) {
    const auto path = store::segment_path(segment.segment);
    const auto sum = sums[segment.segment];
    sums.erase(segment.segment);
    if (segment.raw_bytes != sum.raw || segment.live_bytes != sum.live ||
        segment.bytes != sum.end || segment.containers != sum.containers) {
      damage("", "the record of " + path + " does not fit its containers");
    }
    if (check_lengths) {
      const auto length = store.size(segment.segment);
      VARVE_TRY_ASSIGN(const auto later, meta::ReadTxn::begin(txn.env()));
      VARVE_TRY_ASSIGN(const auto now, catalog::find_segment(later, store_id, segment.segment));
      // A writer may have deleted or cut the file since the snapshot.
      if (now && now->bytes == segment.bytes && (!length || *length < segment.bytes)) {
        damage(path, fmt::format("{} has {} bytes instead of {}", path, length ? *length : 0,
                                 segment.bytes));
      }
    }
    if (segment.active()) continue;
    VersionNumber birth{};
    for (const auto& entry : sum.by_offset) {
      if (entry.second->birth < birth) damage("", "births descend in " + path);
      birth = entry.second->birth;
    }
  }
  for (const auto& entry : sums) {
    damage("", store::segment_path(entry.first) + " holds containers, but has no record");
  }
  return {};
}

}  // namespace varve::maintain
