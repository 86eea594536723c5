// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "varve/result.h"

namespace varve::control {

struct UnmountOutcome {
  std::string mount_point;
  bool daemon_was_dead = false;  ///< Only the dead mount point was cleaned up.
};

/// Unmounts the Varve file system whose mount point, or whose repository, `path` is, and waits
/// until its daemon has written everything and ended.
/// Errors: kBusy if a program uses it, or the daemon is stopped; kInvalid if `path` is neither;
/// kNotPermitted for a mount that another ordinary user made.
[[nodiscard]] Result<UnmountOutcome> unmount(const std::string& path);

}  // namespace varve::control
