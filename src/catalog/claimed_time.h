// SPDX-License-Identifier: Apache-2.0
// The claimed time of a version: an extended attribute of the version's root, hidden from users.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "varve/types.h"

namespace varve::catalog {

inline constexpr std::string_view kClaimedAttribute = "user.varve.claimed_at";

/// Returns the attribute's value (docs/FORMAT.md §7).
[[nodiscard]] std::string encode_claimed_time(VersionNumber number, const Timestamp& time);

/// Returns the claimed time in the attributes of a version's root; nullopt without a claimed time,
/// or if the claimed time belongs to the original of a clone.
[[nodiscard]] std::optional<Timestamp> claimed_time(VersionNumber number, const Xattrs& of_root);

}  // namespace varve::catalog
