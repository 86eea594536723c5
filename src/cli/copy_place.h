// SPDX-License-Identifier: Apache-2.0
// Opens the target of a copy in this process.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/store_waiting.h"
#include "control/mounted_path.h"
#include "varve/copy.h"
#include "varve/replication.h"
#include "varve/repository.h"
#include "varve/result.h"

namespace varve::cli {

/// The target of a copy on this machine.
struct CopyPlace {
  std::string folder{};  ///< May not exist yet.
  /// The object store that the folder belongs to, or shall belong to.
  std::optional<StorePlace> store{};
};
/// Finds the folder of a target. `named` is the folder, a mount of it, or a place in an object
/// store. For such a place, `local` names the folder unless this machine knows it; `how` has its
/// endpoint and region.
/// Errors: kUsage without a folder; kInvalid if it belongs to another place.
[[nodiscard]] Result<CopyPlace> find_copy_place(const std::string& named, const std::string& local,
                                                const StorePlace& how, control::Purpose purpose);

/// Opens the repository of a place for copies, with the key that the environment names. Creates it
/// if the folder is empty or absent and `setup.kind` allows that; the key is the first one of an
/// encrypted repository then, and a terminal is asked for it twice. In a dry run, opens it
/// read-only, and returns null if there is none. `key_options` begins the names of the options that
/// name the key, such as "target-".
/// Errors: kWrongKey for a repository of the wrong kind, and without a key; kNoRepository if there
/// is none and it must exist; kLocked if another process writes to it, or it is mounted; those of
/// create_target().
[[nodiscard]] Result<std::unique_ptr<Repository>> open_copy_place(const CopyPlace& place,
                                                                  const TargetSetup& setup,
                                                                  bool dry_run,
                                                                  const std::string& key_options,
                                                                  const StoreWaits& waits);

}  // namespace varve::cli
