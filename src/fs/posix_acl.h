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

struct AclSummary {
  std::uint32_t permissions = 0;  ///< The nine bits that the ACL stands for.
  bool extended = false;          ///< Says more than the permission bits can.
};

/// `value` is the extended attribute's value; nullopt if it is no ACL.
[[nodiscard]] std::optional<AclSummary> summarise_acl(std::string_view value);

/// The ACL after chmod(2) to `mode`. `value` must be an ACL.
[[nodiscard]] std::string acl_after_chmod(std::string_view value, std::uint32_t mode);

}  // namespace varve::fs
