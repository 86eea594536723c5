// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "format/data_codecs.h"
#include "io/watched_file_system.h"
#include "maintain/owner_stores.h"
#include "maintain/repair_helpers.h"
#include "maintain/superblock_repair.h"
#include "meta/lmdb.h"
#include "store/repository_paths.h"
#include "varve/repair.h"
#include "varve/result.h"

namespace varve::maintain {

/// A repository under repair, and the plan of the repair. Lifetime: the referenced objects outlive
/// the scope.
struct RepairScope {
  const format::DataCodecs& codecs;
  io::FileSystem& files;         ///< Opens sealed files with the keys of the superblock.
  io::WatchedFileSystem& watch;  ///< The file system below `files`.
  const store::RepositoryPaths paths;
  const RepairOptions& options;
  const RepairHelpers& helpers;
  const SuperblockRepair& superblock;
  OwnerStores& stores;
  const bool has_lock;  ///< False in a scan beside which a writer may be active.
  std::vector<RepairStep>& steps;

  [[nodiscard]] const std::string& path() const { return paths.root(); }
  [[nodiscard]] std::string catalog_path() const { return paths.root() + "/catalog"; }
  /// Returns the options with which the repair opens a catalog.
  [[nodiscard]] meta::EnvOptions catalog_options(bool read_only) const;
  void add_step(RepairStep::Kind kind, std::string where, std::string what) const;
  /// Removes the note of a clean close: the next opening completes whatever the repair removes or
  /// the user has damaged.
  [[nodiscard]] Result<void> remove_settled() const;
};

}  // namespace varve::maintain
