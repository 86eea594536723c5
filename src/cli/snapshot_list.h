// SPDX-License-Identifier: Apache-2.0
// The dated snapshots in a folder, for `varve import`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "varve/result.h"
#include "varve/types.h"

namespace varve::cli {

/// A directory with a snapshot.
struct Snapshot {
  std::string directory;  ///< Name in the folder.
  std::string version;    ///< Name of the resulting version.
  Timestamp time;
};

struct SnapshotList {
  std::vector<Snapshot> snapshots;  ///< Ascending by time.
  /// Directories without a complete snapshot, each with the reason.
  std::vector<std::string> left_out;
};

/// Returns the local time in a name: year, month and day, optionally hours, minutes and seconds,
/// with any or no separators, in this order. The name may also have a prefix of other characters,
/// but nothing else.
[[nodiscard]] std::optional<Timestamp> time_in_name(std::string_view name);

/// Returns the snapshots in a folder: the directories, but no symlinks. Names with a date become
/// versions of the same name, and the date is the time. Any other snapshot, such as alpha.0 of
/// rsnapshot, is named by the directory's modification time in UTC, because the name moves on.
/// Errors: kIo if the folder cannot be read; kInvalid if two snapshots would get the same name.
[[nodiscard]] Result<SnapshotList> list_snapshots(const std::string& folder);

}  // namespace varve::cli
