// SPDX-License-Identifier: Apache-2.0
#include "layout/segment_ledger.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "catalog/birth_table.h"
#include "layout/coalescing.h"

namespace varve::layout {

namespace {
Error contradiction(const std::string& what) {
  return {ErrorCode::kCorrupt, "catalog: " + what + "; run `varve check`"};
}
}  // namespace

Result<format::ContainerRecord*> SegmentLedger::container(ContainerNumber number) {
  const auto it = containers_.find(number);
  if (it != containers_.end()) return &it->second;
  VARVE_TRY_ASSIGN(const auto found, catalog::find_container(txn_, store_id_, number));
  if (!found) return contradiction(fmt::format("container {} is missing", number));
  return &containers_.emplace(number, *found).first->second;
}

Result<catalog::SegmentRecord*> SegmentLedger::segment(SegmentNumber number) {
  const auto it = segments_.find(number);
  if (it != segments_.end()) return &it->second;
  VARVE_TRY_ASSIGN(const auto found, catalog::find_segment(txn_, store_id_, number));
  if (!found) return contradiction(store::segment_path(number) + " is missing");
  return &segments_.emplace(number, *found).first->second;
}

std::vector<catalog::LocationRecord> locations_of(const store::WrittenContainer& written) {
  std::vector<catalog::LocationRecord> locations;
  std::uint32_t index = 0;
  for (std::size_t i = 0; i < written.ids.size(); ++i) {
    const auto& run = written.ids[i];
    locations.push_back(
        {run.first, run.count, written.run_raw_bytes[i], written.record.number, index});
    index += run.count;
  }
  return locations;
}

Result<void> SegmentLedger::add(const store::WrittenContainer& written, catalog::SegmentRole role,
                                VersionNumber version) {
  for (const auto& location : locations_of(written)) put_.push_back(location);
  const auto& added = written.record;
  auto it = segments_.find(added.segment);
  if (it == segments_.end()) {
    VARVE_TRY_ASSIGN(auto found, catalog::find_segment(txn_, store_id_, added.segment));
    if (!found) {
      found.emplace();
      found->segment = added.segment;
      found->role = role;
      found->version = version;
      found->first_container = added.number;
    }
    it = segments_.emplace(added.segment, *found).first;
  }
  auto& owner = it->second;
  owner.first_container = std::min(owner.first_container, added.number);
  ++owner.containers;
  owner.bytes = std::max(owner.bytes, added.end());
  owner.raw_bytes += added.raw_bytes;
  owner.live_bytes += added.live_bytes;
  containers_[added.number] = added;
  return {};
}

Result<void> SegmentLedger::remove(const catalog::LocationRecord& location,
                                   const std::vector<catalog::LocationRecord>& rest) {
  std::uint64_t kept = 0;
  for (const auto& part : rest) kept += part.raw_bytes;
  VARVE_TRY_ASSIGN(auto* holder, container(location.container));
  VARVE_TRY_ASSIGN(auto* owner, segment(holder->segment));
  const std::uint64_t gone = location.raw_bytes - std::min(kept, location.raw_bytes);
  if (kept > location.raw_bytes || gone > holder->live_bytes || gone > owner->live_bytes) {
    return contradiction(fmt::format("container {} holds less data than the catalog locates in it",
                                     location.container));
  }
  holder->live_bytes -= gone;
  owner->live_bytes -= gone;
  if (owner->active() || owner->bytes <= kSmallVolumeBytes) dead_[location.container] += gone;
  erased_.push_back(location.first);
  put_.insert(put_.end(), rest.begin(), rest.end());
  return {};
}

Result<void> SegmentLedger::finish() {
  std::map<SegmentNumber, std::vector<format::ContainerRecord>> held;
  for (const auto& entry : containers_) held[entry.second.segment].push_back(entry.second);
  for (auto& [number, owner] : segments_) {
    VARVE_TRY(finish_segment(owner, std::move(held[number])));
  }
  return {};
}

Result<void> SegmentLedger::finish_segment(catalog::SegmentRecord& owner,
                                           std::vector<format::ContainerRecord> held) {
  if (owner.live_bytes == owner.raw_bytes) return {};
  if (held.size() < owner.containers) {
    VARVE_TRY(catalog::for_each_container_from(
        txn_, store_id_, owner.first_container,
        [&](const format::ContainerRecord& record) -> Result<bool> {
          if (record.segment == owner.segment && !containers_.contains(record.number)) {
            held.push_back(record);
          }
          return held.size() < owner.containers;
        }));
  }
  if (held.size() != owner.containers) {
    return contradiction(store::segment_path(owner.segment) +
                         " has other containers than its record lists");
  }
  std::sort(held.begin(), held.end(),
            [](const auto& a, const auto& b) { return a.offset < b.offset; });
  const std::uint64_t before = owner.bytes;
  std::uint64_t dropped = 0;
  while (!held.empty() && held.back().live_bytes == 0) {
    containers_gone_.insert(held.back().number);
    dead_.erase(held.back().number);
    dropped += held.back().raw_bytes;
    held.pop_back();
  }
  if (dropped == 0) return {};
  if (held.empty()) {
    segments_gone_.insert(owner.segment);
    cuts_.push_back({owner.segment, before, 0});
    return {};
  }
  owner.bytes = held.back().end();
  owner.raw_bytes -= dropped;
  owner.containers = static_cast<std::uint32_t>(held.size());
  cuts_.push_back({owner.segment, before, owner.bytes});
  return {};
}

std::uint64_t SegmentLedger::dead_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [number, raw_bytes] : dead_) {
    const format::ContainerRecord& record = containers_.at(number);
    sum +=
        raw_bytes * (record.end() - record.offset) / std::max<std::uint64_t>(record.raw_bytes, 1);
  }
  return sum;
}

std::uint64_t SegmentLedger::freed_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& cut : cuts_) sum += cut.bytes_before - cut.bytes_after;
  return sum;
}

Result<void> SegmentLedger::apply(meta::WriteTxn& txn) const {
  for (const auto id : erased_) VARVE_TRY(catalog::erase_location(txn, store_id_, id));
  for (const auto& location : put_) VARVE_TRY(catalog::put_location(txn, store_id_, location));
  if (store_id_ != kPoolStore) {  // In the pool, chunks may become aliases in this transaction.
    std::set<VersionNumber> births;
    for (const auto id : erased_) births.insert(id.birth());
    VARVE_TRY(catalog::erase_unused_births(txn, store_id_, births));
  }
  for (const auto& [number, record] : containers_) {
    if (!containers_gone_.contains(number)) {
      VARVE_TRY(catalog::put_container(txn, store_id_, record));
    }
  }
  for (const auto number : containers_gone_) {
    VARVE_TRY(catalog::erase_container(txn, store_id_, number));
  }
  for (const auto& [number, record] : segments_) {
    if (segments_gone_.contains(number)) {
      VARVE_TRY(catalog::erase_segment(txn, store_id_, number));
    } else {
      VARVE_TRY(catalog::put_segment(txn, store_id_, record));
    }
  }
  return {};
}

Result<void> free_files(store::SegmentStore& store, const std::vector<FileCut>& cuts) {
  Result<void> outcome;
  for (const auto& cut : cuts) {
    auto freed =
        cut.bytes_after == 0 ? store.remove(cut.segment) : store.cut(cut.segment, cut.bytes_after);
    if (!freed && freed.error().code() != ErrorCode::kNotFound && outcome) {
      outcome = std::move(freed);
    }
  }
  return outcome;
}

}  // namespace varve::layout
