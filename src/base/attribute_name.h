// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace varve::base {

/// The answer of ext4 and xfs to an attribute, by its name.
enum class AttributeName : std::uint8_t {
  kTaken,
  kIncomplete,   ///< EINVAL: a namespace alone, such as "user.".
  kUnsupported,  ///< EOPNOTSUPP: in none of the namespaces.
};

/// Classifies the name of an extended attribute. Of the namespace system, only ACLs are taken.
/// Source: xattr(7); xattr_resolve_name() in fs/xattr.c of Linux.
[[nodiscard]] inline AttributeName classify_attribute(std::string_view name) {
  constexpr std::array<std::string_view, 3> kNamespaces{"user.", "trusted.", "security."};
  if (name == "system.posix_acl_access" || name == "system.posix_acl_default") {
    return AttributeName::kTaken;
  }
  if (std::ranges::find(kNamespaces, name) != kNamespaces.end()) return AttributeName::kIncomplete;
  const bool is_taken = std::ranges::any_of(
      kNamespaces, [&](std::string_view prefix) { return name.starts_with(prefix); });
  return is_taken ? AttributeName::kTaken : AttributeName::kUnsupported;
}

}  // namespace varve::base
