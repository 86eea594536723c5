// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>

namespace varve::control {

/// Returns the home directory of a user: $HOME if this user owns the directory, otherwise the
/// directory in the user database. `sudo` and setpriv(1) may keep another user's $HOME. Without an
/// entry in the database returns $HOME. Returns "" if no variable and no entry has an absolute
/// path.
[[nodiscard]] std::string home_folder(uid_t user);

}  // namespace varve::control
