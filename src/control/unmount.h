// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "varve/result.h"

namespace varve::control {

struct UnmountOutcome {
  std::string mount_point;
  bool daemon_was_dead = false;  ///< Only the dead mount point was cleaned up.
};

enum class UnmountMode : std::uint8_t {
  kSafe,   ///< Stays mounted if the daemon cannot make all open versions durable.
  kForce,  ///< Unmounts nevertheless: what is not on disk is lost.
};

/// Unmounts the Varve file system whose mount point, or whose repository, `path` is, and waits
/// until its daemon has written everything and ended.
/// Errors: kBusy if a program uses it, or the daemon is stopped; kInvalid if `path` is neither;
/// kNotPermitted for a mount that another ordinary user made. With kSafe also the error that keeps
/// open versions from being made durable; it names them.
[[nodiscard]] Result<UnmountOutcome> unmount(const std::string& path,
                                             UnmountMode mode = UnmountMode::kSafe);

}  // namespace varve::control
