// SPDX-License-Identifier: Apache-2.0
// mount(8) with -o remount.
#pragma once

#include <string>
#include <string_view>

#include "varve/result.h"

namespace varve::fs {

/// True if a list of mount options contains "remount".
[[nodiscard]] bool asks_for_remount(std::string_view list);

/// Changes what the kernel allows in the mount at `directory`: ro, rw, suid, dev, exec, atime and
/// their contraries. Options that are not named stay as they are; those of the daemon cannot
/// change, and are ignored as the kernel ignores them. kInvalid where nothing of Varve is mounted
/// there, or for rw where the daemon has opened the repository read-only. kBusy for ro while files
/// are open for writing.
[[nodiscard]] Result<void> remount(const std::string& directory, std::string_view list);

}  // namespace varve::fs
