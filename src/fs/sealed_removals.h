// SPDX-License-Identifier: Apache-2.0
// Removing a sealed version by `rm -r` (mount option rm_deletes).
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "fs/caller.h"
#include "fs/file_stat.h"
#include "fs/node_table.h"
#include "fs/rank_set.h"
#include "fs/slot_table.h"
#include "varve/browse.h"
#include "varve/repository.h"
#include "varve/result.h"

namespace varve::fs {

/// Remembers the names removed by programs in sealed versions, and hides the names in the mount.
/// Nothing else changes: removing the root deletes the whole version. If nothing was removed from a
/// version for ShowOptions::rm_deletes_s, all names are visible again. Thread-safe.
class SealedRemovals {
 public:
  using Clock = std::chrono::steady_clock;
  /// Limit of RankSet::ranges() for each version: about 16 MiB.
  static constexpr std::size_t kRangesMax = 1U << 18;
  /// Limit on the number of stopped removals, for each version and mount.
  static constexpr std::size_t kStoppedMax = 64;

  /// Lifetime: the arguments must outlive the object. Tests pass a fake clock as `now`.
  SealedRemovals(Repository& repository, const ShowOptions& show,
                 std::function<Clock::time_point()> now = Clock::now)
      : repository_(repository), show_(show), now_(std::move(now)) {}

  /// Returns whether the mount accepts removals in sealed versions.
  [[nodiscard]] bool are_accepted() const {
    return show_.rm_deletes_s.has_value() && !repository_.read_only();
  }
  /// Returns whether the caller may delete versions: root, or the owner of the series' directory.
  /// Permission bits inside a version give no right to delete the version.
  [[nodiscard]] bool may_remove(const Caller& caller) const {
    return caller.uid() == 0 || caller.uid() == show_.uid.value_or(show_.owner_uid);
  }

  /// Returns whether names were removed from a version and are still hidden.
  [[nodiscard]] bool is_under_way(Slot& slot);
  /// Returns whether a name was removed. Costs nothing while no removal is under way.
  [[nodiscard]] bool hides(Slot& slot, Rank rank);
  /// Returns whether a directory of a sealed version has no visible name.
  /// Errors: the errors of VersionReader::list().
  [[nodiscard]] Result<bool> is_empty(Slot& slot, VersionReader& reader, Rank directory);

  enum class What { kFile, kDirectory };
  /// Hides a name of a sealed version. The first removal in a version may wait for the disk.
  /// Errors: kNotFound; kIsDirectory, kNotDirectory or kNotEmpty as unlink(2) and rmdir(2);
  /// kNotPermitted or kBusy if the version cannot be deleted now; kNoSpace above the limits.
  [[nodiscard]] Result<void> remove(const Node& directory, std::string_view name, What what);
  /// Forgets the removal in a version, after the version was deleted.
  void forget(Slot& slot);

 private:
  struct Removal {
    RankSet hidden;
    Clock::time_point last;
  };
  /// Returns the removal in a version; null if there is no removal, or if the removal has stopped.
  /// The caller holds the mutex.
  Removal* find(Slot& slot);
  /// Begins a removal, after checking for permission to delete the version.
  [[nodiscard]] Result<void> begin(Slot& slot, const std::string& name);

  Repository& repository_;
  const ShowOptions show_;
  const std::function<Clock::time_point()> now_;
  std::atomic<bool> any_ = false;  ///< False: `removals_` is empty.
  std::mutex mutex_;               // Innermost.
  std::unordered_map<const Slot*, Removal> removals_;
  /// The refusal logged last.
  struct Refused {
    const Slot* slot;
    ErrorCode code;
    Clock::time_point until;
  };
  std::optional<Refused> refused_;
};

}  // namespace varve::fs
