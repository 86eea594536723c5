// SPDX-License-Identifier: Apache-2.0
// The counts of rewriting as bytes: in the catalog, and in the overlay of an open version.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "varve/result.h"
#include "varve/rewrite.h"

namespace varve::format {

/// The highest stored count. encode_rewrite_counts() lowers greater counts to kCountMax.
inline constexpr std::uint64_t kCountMax = (std::uint64_t{1} << 60) - 1;

/// Encode and decode the value of `rewrite_counts` in the catalog (docs/FORMAT.md §7).
/// Errors: kCorrupt, also for a count above kCountMax, and for chunks without bytes.
[[nodiscard]] std::string encode_rewrite_counts(const RewriteCounts& counts);
[[nodiscard]] Result<RewriteCounts> decode_rewrite_counts(std::string_view bytes);

}  // namespace varve::format
