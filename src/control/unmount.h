// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "control/mount_holder.h"
#include "varve/result.h"

namespace varve::control {

struct UnmountOutcome {
  std::string mount_point;
  std::string repository{};      ///< Empty if the daemon was dead or read-only.
  bool daemon_was_dead = false;  ///< Only a dead mount point was removed.
};

enum class UnmountMode : std::uint8_t {
  kSafe,   ///< Keeps the mount if the daemon cannot make all open versions durable.
  kForce,  ///< Unmounts even so; data not yet on disk is lost.
};

/// A wait for the daemon.
struct LongWait {
  std::string repository;
  std::int64_t process = 0;             ///< The daemon.
  bool is_unmounted = true;             ///< False while the daemon makes open versions durable.
  std::optional<MountHolder> holder{};  ///< Another mount of the file system.
};

struct UnmountChoices {
  UnmountMode mode = UnmountMode::kSafe;
  /// Whether the daemon waits until the repository's object store has all sealed versions.
  bool waits_for_store = true;
  /// Called repeatedly while the daemon takes long, because the reason of the wait may change. May
  /// be empty.
  std::function<void(const LongWait& wait)> takes_long{};
};

/// Unmounts the Varve file system at the mount point or of the repository `path`. Waits until the
/// daemon has written everything and ended.
/// Errors: kBusy if a program uses the mount; kUnavailable if the daemon is stopped; kInvalid if
/// `path` is neither a mount point nor a mounted repository; kNotPermitted if another user made the
/// mount, and the caller is not root. With kSafe, also the error of making open versions durable,
/// which names the versions.
[[nodiscard]] Result<UnmountOutcome> unmount(const std::string& path,
                                             const UnmountChoices& choices = {});

}  // namespace varve::control
