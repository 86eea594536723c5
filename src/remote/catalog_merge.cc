// SPDX-License-Identifier: Apache-2.0
#include "remote/catalog_merge.h"

#include <map>
#include <optional>
#include <utility>

#include "remote/changes.h"
#include "remote/head_objects.h"

namespace varve::remote {

namespace {

// Limit of small objects behind the base of a head. The limit does not count longer objects.
constexpr std::size_t kSmallObjectsMax = 12;
// Limit of the length of a merged object. All objects of a merge are in memory together.
constexpr std::uint64_t kMergedBytesMax = std::uint64_t{1} << 20;

}  // namespace

CatalogStep catalog_step(const Head& before, const Head& after) {
  const auto front = common_front(before.catalog, after.catalog);
  const bool has_base = before.base_objects != 0 && before.base_objects == after.base_objects &&
                        front >= before.base_objects;
  if (front == before.catalog.size() && front != 0) return {front, false};
  return has_base ? CatalogStep{front, false} : CatalogStep{0, true};
}

// Merges each object no longer than the sum of the newer objects. In 1,000 heads, the rule writes
// each change about three times.
std::size_t objects_to_merge(const Head& head, std::uint64_t bytes) {
  const auto size = head.catalog.size();
  std::size_t small = 0;
  while (small < size - head.base_objects &&
         head.catalog[size - 1 - small].bytes <= kMergedBytesMax) {
    ++small;
  }
  if (small < kSmallObjectsMax) return 0;
  std::size_t merged = 1;
  auto sum = bytes + head.catalog[size - 1].bytes;
  while (merged < small && head.catalog[size - 1 - merged].bytes <= sum) {
    sum += head.catalog[size - 1 - merged].bytes;
    ++merged;
  }
  return merged;
}

Result<std::vector<std::string>> merge_parts(const std::vector<std::string>& parts) {
  std::map<std::pair<std::uint8_t, std::string>, std::optional<std::string>> last;
  for (const auto& part : parts) {
    VARVE_TRY(for_each_change(part, [&](const Change& change) -> Result<void> {
      auto& value = last[{change.table, std::string(change.key)}];
      value = change.value ? std::optional<std::string>(*change.value) : std::nullopt;
      return {};
    }));
  }
  ChangeWriter changes;
  for (const auto& [key, value] : last) {
    changes.add(
        {key.first, key.second, value ? std::optional<std::string_view>(*value) : std::nullopt});
  }
  return changes.finish();
}

}  // namespace varve::remote
