// SPDX-License-Identifier: Apache-2.0
// Finds open versions whose files are lost although the catalog still lists the versions.
#pragma once

#include <optional>
#include <string>

#include "catalog/series_catalog.h"
#include "io/file_system.h"
#include "meta/lmdb.h"
#include "varve/result.h"

namespace varve::maintain {

/// Returns the folder of an open version's overlay, which may not exist.
[[nodiscard]] std::string overlay_directory(const std::string& repository_path,
                                            const catalog::VersionRecord& record);

/// Returns true if an open version stored chunks but the overlay, which lists the version's files,
/// is missing.
/// Errors: the errors of the catalog and the file system.
[[nodiscard]] Result<bool> is_staging_lost(io::FileSystem& files,
                                           const std::string& repository_path, const meta::Txn& txn,
                                           const catalog::VersionRecord& record);

/// Returns the reason for the loss of an open version's content: the overlay is missing, or LMDB
/// must not open the overlay. Returns nullopt if the overlay is sound or the version is not open.
/// `locked`: true if no writer can change the overlay meanwhile. Reads all pages of the overlay.
/// Errors: the errors of the catalog and the file system.
[[nodiscard]] Result<std::optional<std::string>> fault_of_open_version(
    io::FileSystem& files, const std::string& repository_path, const meta::Txn& txn,
    const catalog::VersionRecord& record, bool locked);

}  // namespace varve::maintain
