// SPDX-License-Identifier: Apache-2.0
// Opens the target of a copy in this process.
#pragma once

#include <memory>
#include <string>

#include "varve/copy.h"
#include "varve/repository.h"
#include "varve/result.h"

namespace varve::cli {

/// Opens the repository in `path` for copies, with the key that the environment names. Creates it
/// if the folder is empty or absent and `setup.kind` allows that; the key is the first one of an
/// encrypted repository then, and a terminal is asked for it twice. In a dry run, opens it
/// read-only, and returns null if there is none. `key_options` begins the names of the options that
/// name the key, such as "target-".
/// Errors: kWrongKey for a repository of the wrong kind, and without a key; kNoRepository if there
/// is none and it must exist; kLocked if another process writes to it, or it is mounted; those of
/// create_target().
[[nodiscard]] Result<std::unique_ptr<Repository>> open_copy_place(const std::string& path,
                                                                  const TargetSetup& setup,
                                                                  bool dry_run,
                                                                  const std::string& key_options);

}  // namespace varve::cli
