// SPDX-License-Identifier: Apache-2.0
// Merges the newest catalog objects of a head, so that a head names few objects.
// docs/decisions/162.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "remote/head.h"
#include "varve/result.h"

namespace varve::remote {

/// The way from the catalog objects of one head to the catalog objects of a later head.
struct CatalogStep {
  std::size_t kept = 0;   ///< Objects at the front of both heads.
  bool replaces = false;  ///< The objects behind `kept` form a whole catalog.
};
/// Compares two heads; `before` is empty before the first head. If the heads have a common base,
/// the objects of `after` behind `kept` have all keys of the objects of `before` behind `kept`. So
/// applied to the catalog of `before`, these objects give the catalog of `after`, if `after`
/// continues `before`.
[[nodiscard]] CatalogStep catalog_step(const Head& before, const Head& after);

/// Returns the number of catalog objects at the end of a head that the next head should merge with
/// its own changes of `bytes` bytes; usually 0.
[[nodiscard]] std::size_t objects_to_merge(const Head& head, std::uint64_t bytes);

/// Returns parts with the last change of each key in `parts`. Keeps removals: a reader may know a
/// head that has the removed key. Errors: kCorrupt.
[[nodiscard]] Result<std::vector<std::string>> merge_parts(const std::vector<std::string>& parts);

}  // namespace varve::remote
