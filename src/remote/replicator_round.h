// SPDX-License-Identifier: Apache-2.0
// The state of one replication, shared by the sources of the replicator.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "remote/changes.h"
#include "remote/replica_files.h"
#include "remote/replicator_parts.h"
#include "remote/upload_check.h"
#include "remote/uploads.h"
#include "varve/result.h"

namespace varve::remote {

/// One replication: a snapshot of the catalog, and the resulting work.
struct ReplicationRound {
  explicit ReplicationRound(const UploadLimits& limits) : uploads(limits) {}

  std::uint64_t commit = 0;
  std::uint64_t head = 0;  ///< Number of the head after the round.
  std::string superblock{};
  /// False if only the catalog's changes since the newest head are examined.
  bool is_full = true;
  std::vector<ReplicaFile> files{};  ///< All files, or only possibly changed files.
  std::set<std::string> removed{};   ///< Files of the newest head that no longer exist.
  std::set<std::string> changed{};   ///< Files to upload again as a whole.
  std::map<std::string, FileContainers> containers{};  ///< The containers of data files to upload.
  ChangeWriter changes{};
  bool is_base = false;
  bool catalog_changed = false;
  bool copies_begun = false;         ///< The extents of `objects` are known after the copies.
  bool is_rebuilt = false;           ///< The catalog has another identity than before.
  ObjectMap objects{};               ///< The map after the round, only for `files`.
  std::vector<std::string> parts{};  ///< The content of the catalog objects to upload.
  ReplicateReport report{};
  Uploads uploads;  ///< Destroyed first: its requests use the other members.
};

/// Returns kStale: a newer snapshot of the catalog does not need the file.
[[nodiscard]] Error changed_meanwhile(const std::string& path);

}  // namespace varve::remote
