// SPDX-License-Identifier: Apache-2.0
#include "varve/placement.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace varve {
namespace {

struct Row {
  Placement placement;
  std::string_view name;
  bool is_built;  // Whether this build can make series with the placement.
};

constexpr std::array kRows = {
    Row{Placement::kLineage, "lineage", true},
    Row{Placement::kLineagePool, "lineage+pool", true},
    Row{Placement::kPool, "pool", true},
};

}  // namespace

std::string_view placement_name(Placement placement) {
  const auto row = std::ranges::find(kRows, placement, &Row::placement);
  return row == kRows.end() ? std::string_view("?") : row->name;
}

std::string placement_names() {
  std::string names;
  for (const Row& row : kRows) names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
  return names;
}

Result<Placement> parse_placement(std::string_view name) {
  const auto row = std::ranges::find(kRows, name, &Row::name);
  if (row != kRows.end()) return row->placement;
  return Error(ErrorCode::kInvalid, fmt::format("unknown placement `{}`; the placements are {}",
                                                name, placement_names()));
}

Result<void> check_placement(Placement placement) {
  const auto row = std::ranges::find(kRows, placement, &Row::placement);
  if (row != kRows.end() && row->is_built) return {};
  return Error(ErrorCode::kUnsupported,
               fmt::format("this build of Varve has no series with the placement `{}`; it makes {}",
                           placement_name(placement), placement_name(Placement::kLineage)));
}

}  // namespace varve
