// SPDX-License-Identifier: Apache-2.0
// Repairs the objects of a repository in an object store from an attached folder.
// docs/decisions/164.
#pragma once

#include <memory>
#include <string>

#include "remote/bucket_hooks.h"
#include "varve/repair.h"
#include "varve/result.h"

namespace varve::remote {

/// Plans to write missing and damaged objects again from a folder that is attached for reading:
/// only with the bytes that the newest head names, under the objects' own names. Creates no new
/// head. Unless `scan_only`, first brings the folder to the newest head. Reads segments and volumes
/// of the store only with RepairOptions::read_store.
/// Errors: kReadOnly, which names the way out, if nothing can be written again although objects are
/// lost, and for options that change the repository; kLocked while another process uses the
/// folder; kWrongKey; errors of the bucket and the disk.
[[nodiscard]] Result<std::unique_ptr<Repair>> plan_reader_repair(const std::string& folder,
                                                                 const RepairOptions& options,
                                                                 bool scan_only,
                                                                 const BucketHooks& hooks);

}  // namespace varve::remote
