// SPDX-License-Identifier: Apache-2.0
// Implements mount(8) with -o remount.
#pragma once

#include <string>
#include <string_view>

#include "varve/result.h"

namespace varve::fs {

/// Returns true if a list of mount options contains "remount".
[[nodiscard]] bool asks_for_remount(std::string_view list);

/// Changes the kernel's flags of the mount at `directory`: ro, rw, suid, dev, exec, atime and their
/// opposites. Keeps flags that the list does not name. Ignores the daemon's own options, which
/// cannot change, as the kernel does.
/// Errors: kNotFound if `directory` is in no Varve mount; kInvalid if it is below a mount point, or
/// for rw if the daemon has opened the repository read-only; kBusy for ro while files are open for
/// writing.
[[nodiscard]] Result<void> remount(const std::string& directory, std::string_view list);

}  // namespace varve::fs
