// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "varve/result.h"

namespace varve::control {

struct UnmountOutcome {
  std::string mount_point;
  bool daemon_was_dead = false;  ///< Only the dead mount point was cleaned up.
};

/// Unmounts the Varve file system whose mount point `path` is, and waits until its daemon has
/// written everything and ended. kBusy while somebody uses it, kInvalid if `path` is not a
/// Varve mount point.
[[nodiscard]] Result<UnmountOutcome> unmount(const std::string& path);

}  // namespace varve::control
