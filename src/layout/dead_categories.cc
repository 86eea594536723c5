// SPDX-License-Identifier: Apache-2.0
#include "layout/dead_categories.h"

#include <algorithm>

#include "layout/file_chunks.h"

namespace varve::layout {

Result<void> DeadCategories::add(const catalog::SegmentRecord& volume, VersionNumber last) {
  return for_each_container_in(
      txn_, store_, volume, [&](const format::ContainerRecord& record) -> Result<bool> {
        if (record.birth > last) {
          containers_[record.number] = {record.birth, volume.version, record.live_bytes};
        }
        return true;
      });
}

void DeadCategories::take(const catalog::LocationRecord& record) {
  auto& left = containers_.at(record.container).left_bytes;
  left -= std::min(left, record.raw_bytes);
  taken_.insert(record.first);
}

Result<std::vector<catalog::LocationRecord>> DeadCategories::rest() const {
  std::map<ContainerNumber, Container> wanted = containers_;
  std::erase_if(wanted, [](const auto& entry) { return entry.second.left_bytes == 0; });
  std::set<ChunkId> seen = taken_;
  std::vector<catalog::LocationRecord> found;
  const auto scan = [&](VersionNumber from, VersionNumber to) {
    return catalog::for_each_location(
        txn_, store_, ChunkId::make(from, 0),
        [&](const catalog::LocationRecord& record) -> Result<bool> {
          if (record.first.birth() > to) return false;
          const auto holder = wanted.find(record.container);
          if (holder == wanted.end() || !seen.insert(record.first).second) return true;
          found.push_back(record);
          auto& left = holder->second.left_bytes;
          left -= std::min(left, record.raw_bytes);
          if (left == 0) wanted.erase(holder);
          return !wanted.empty();
        });
  };
  // Most containers have one birth.
  std::set<VersionNumber> births;
  for (const auto& entry : wanted) births.insert(entry.second.birth);
  for (const auto birth : births) {
    if (!wanted.empty()) VARVE_TRY(scan(birth, birth));
  }
  if (wanted.empty()) return found;
  VersionNumber from = wanted.begin()->second.birth;
  VersionNumber to{};
  for (const auto& entry : wanted) {
    from = std::min(from, entry.second.birth);
    to = std::max(to, entry.second.death);
  }
  const auto after = static_cast<VersionNumber>(static_cast<std::uint32_t>(from) + 1);
  VARVE_TRY(scan(after, to));
  return found;
}

}  // namespace varve::layout
