// SPDX-License-Identifier: Apache-2.0
// Settings of a repository's upkeep: defaults for commands and daemons without an option.
#pragma once

#include <cstdint>
#include <optional>

#include "varve/object_lock.h"
#include "varve/retention.h"

namespace varve {

/// Defaults for arranging, pruning and storing; see `varve config`.
struct UpkeepSettings {
  /// Limit on the bytes that arranging reads and writes each second; 0 = no limit. nullopt: the
  /// limit of the program, 64 MiB in the background and none otherwise.
  std::optional<std::uint64_t> arrange_bytes_per_second;
  KeepRules keep;  ///< The rules of a prune without rules; none unless set.
  /// The object lock of a repository in an object store; none unless set.
  ObjectLock object_lock{};
  /// Whether `varve store` refuses a directory that is empty or has lost most of its content.
  bool guards_sources = true;

  friend bool operator==(const UpkeepSettings&, const UpkeepSettings&) = default;
};

}  // namespace varve
