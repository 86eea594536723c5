// SPDX-License-Identifier: Apache-2.0
// Opens the target of a copy in this process.
#pragma once

#include <memory>
#include <string>

#include "varve/copy.h"
#include "varve/repository.h"
#include "varve/result.h"

namespace varve::cli {

/// Opens the repository in `path` for copies. Creates a plain one if the folder is empty or absent,
/// but not for an encrypted source. In a dry run, opens it read-only, and returns null if there is
/// none.
/// Errors: kNoRepository if there is none for an encrypted source; kLocked if another process
/// writes to it, or it is mounted; those of create_target().
[[nodiscard]] Result<std::unique_ptr<Repository>> open_copy_place(const std::string& path,
                                                                  const TargetSetup& setup,
                                                                  bool dry_run,
                                                                  bool source_is_encrypted);

}  // namespace varve::cli
