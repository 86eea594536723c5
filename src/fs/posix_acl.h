// SPDX-License-Identifier: Apache-2.0
// POSIX access control lists as far as a file system without its own enforcement needs them:
// an access ACL and the permission bits describe the same thing twice (acl(5)), and programs
// such as cp(1) set either of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace varve::fs {

inline constexpr std::string_view kAccessAclName = "system.posix_acl_access";
inline constexpr std::string_view kCapabilityName = "security.capability";
inline constexpr std::string_view kDefaultAclName = "system.posix_acl_default";

struct AclSummary {
  std::uint32_t permissions = 0;  ///< The nine bits that the ACL stands for.
  bool extended = false;          ///< Says more than the permission bits can.
};

/// `value` is the extended attribute's value; nullopt if it is no ACL.
[[nodiscard]] std::optional<AclSummary> summarise_acl(std::string_view value);

/// What a new file gets from its directory's default ACL.
struct InheritedAcl {
  std::uint32_t permissions = 0;  ///< The nine bits of its mode.
  std::string access;             ///< Its access ACL, "" if the bits say it all.
};
/// POSIX.1e draft 17, 23.1.3 (acl(5), "Object creation and default ACLs"): the default ACL, less
/// what the creating program's `mode` does not grant. `value` is the default ACL's; nullopt if
/// it is no ACL.
[[nodiscard]] std::optional<InheritedAcl> inherit_acl(std::string_view value, std::uint32_t mode);

/// The ACL after chmod(2) to `mode`. `value` must be an ACL.
[[nodiscard]] std::string acl_after_chmod(std::string_view value, std::uint32_t mode);

}  // namespace varve::fs
