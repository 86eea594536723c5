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
  std::string repository{};      ///< Empty if the daemon was dead, or did not write.
  bool daemon_was_dead = false;  ///< Only a dead mount point was removed.
};

enum class UnmountMode : std::uint8_t {
  kSafe,   ///< Keeps the mount if the daemon cannot make all open versions durable.
  kForce,  ///< Unmounts even so; data not yet on disk is lost.
};

/// A wait for the daemon.
struct LongWait {
  std::string repository;
  std::int64_t process = 0;  ///< The daemon.
  bool is_unmounted = true;  ///< False while the daemon makes open versions durable before that.
  std::optional<MountHolder> holder{};  ///< What has the file system mounted elsewhere.
};

struct UnmountChoices {
  UnmountMode mode = UnmountMode::kSafe;
  /// Whether the daemon waits until the repository's object store has all that is sealed.
  bool waits_for_store = true;
  /// Called while the daemon takes long, again and again: what it waits for may change. May be
  /// empty.
  std::function<void(const LongWait& wait)> takes_long{};
};

/// Unmounts the Varve file system at the mount point or of the repository `path`. Waits until its
/// daemon has written everything and ended.
/// Errors: kBusy if a program uses the mount, or the daemon is stopped; kInvalid if `path` is
/// neither a mount point nor a mounted repository; kNotPermitted if another user made the mount,
/// and the caller is not root. With kSafe, also the error of making open versions durable, which
/// names them.
[[nodiscard]] Result<UnmountOutcome> unmount(const std::string& path,
                                             const UnmountChoices& choices = {});

}  // namespace varve::control
