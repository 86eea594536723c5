// SPDX-License-Identifier: Apache-2.0
// Opens the target of a copy in the calling process.
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

/// The target of a copy on the local machine.
struct CopyPlace {
  std::string folder{};  ///< May not exist yet.
  /// The present or future object store of the folder.
  std::optional<StorePlace> store{};
};
/// Finds the folder of a target. `named` is the folder, a mount of the folder, or a place in an
/// object store. For a place, `local` names the folder unless the local machine remembers the
/// folder; `how` has the place's endpoint and region.
/// Errors: kUsage without a folder; kInvalid if the folder belongs to another place.
[[nodiscard]] Result<CopyPlace> find_copy_place(const std::string& named, const std::string& local,
                                                const StorePlace& how, control::Purpose purpose);

/// Opens the repository of a place for copies, with the key named by the environment. If the folder
/// is empty or absent and `setup.kind` allows a new repository, creates the repository; the key
/// becomes the first key of an encrypted repository, and a passphrase from a terminal is asked for
/// twice. In a dry run, opens the repository read-only, and returns null if there is no repository.
/// `key_options` begins the names of the options for the key, such as "target-".
/// Errors: kWrongKey for a repository of the wrong kind, and without a key; kNoRepository if a
/// required repository does not exist; kLocked if another process writes to the repository, or the
/// repository is mounted; the errors of create_target().
[[nodiscard]] Result<std::unique_ptr<Repository>> open_copy_place(const CopyPlace& place,
                                                                  const TargetSetup& setup,
                                                                  bool dry_run,
                                                                  const std::string& key_options,
                                                                  const StoreWaits& waits);

}  // namespace varve::cli
