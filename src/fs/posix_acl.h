// SPDX-License-Identifier: Apache-2.0
// POSIX access control lists (acl(5)). The kernel enforces the lists; the functions below keep an
// access ACL and the permission bits consistent, since programs such as cp(1) may set either.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace varve::fs {

inline constexpr std::string_view kAccessAclName = "system.posix_acl_access";
inline constexpr std::string_view kCapabilityName = "security.capability";
inline constexpr std::string_view kDefaultAclName = "system.posix_acl_default";

/// The permission bits of an access ACL.
struct AclSummary {
  std::uint32_t permissions = 0;  ///< Nine permission bits equal to the ACL.
  bool extended = false;          ///< Some entries cannot be expressed as permission bits.
};

/// Returns the summary of an access ACL in the form of an extended attribute; nullopt if `value` is
/// not an ACL.
[[nodiscard]] std::optional<AclSummary> summarise_acl(std::string_view value);

/// The rights of a new file from its directory's default ACL.
struct InheritedAcl {
  std::uint32_t permissions = 0;  ///< Nine permission bits of the new file.
  std::string access;             ///< Access ACL of the new file; "" if the bits suffice.
};
/// Returns the rights of a new file: the rights granted both by the directory's default ACL `value`
/// and by `mode`, from the creating program (POSIX.1e draft 17, 23.1.3; acl(5), "Object creation
/// and default ACLs"). Returns nullopt if `value` is not an ACL.
[[nodiscard]] std::optional<InheritedAcl> inherit_acl(std::string_view value, std::uint32_t mode);

/// Returns the ACL `value` after chmod(2) to `mode`. Returns a value that is not an ACL unchanged.
[[nodiscard]] std::string acl_after_chmod(std::string_view value, std::uint32_t mode);

}  // namespace varve::fs
