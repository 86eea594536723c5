// SPDX-License-Identifier: Apache-2.0
// Reads the extended attributes user.varve.* of a mount's root, by which the mount describes
// itself. A mount without requests for extended attributes answers the same to an ioctl(2) on the
// root.
#pragma once

#include <sys/ioctl.h>

#include <string>

namespace varve::control {

/// The value of the ioctl: a name comes in and a value goes out, each with a terminating NUL.
struct OwnAttributeText {
  char text[4096];
};
/// The request of the ioctl. Must never change: a daemon may be older than a command.
inline constexpr unsigned long kOwnAttributeRequest = _IOWR('V', 0x76, OwnAttributeText);

/// The answer of a mount.
struct OwnAttribute {
  std::string value;
  int error = 0;  ///< errno; 0 for success.
};
/// Returns an attribute of the mount on `directory`. May wait for the mount's daemon.
[[nodiscard]] OwnAttribute own_attribute(const std::string& directory, const std::string& name);

}  // namespace varve::control
