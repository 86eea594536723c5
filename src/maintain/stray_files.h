// SPDX-License-Identifier: Apache-2.0
// Finds files and bytes in a repository's folder that do not belong to the repository.
#pragma once

#include <functional>
#include <string>

#include "io/file_system.h"
#include "meta/lmdb.h"
#include "store/folder_store.h"

namespace varve::maintain {

using StrayNote = std::function<void(std::string where, std::string what)>;

/// Notes files and folders with names never used by Varve, up to a limit. Does not enter unknown
/// folders.
void note_unknown_files(io::FileSystem& files, const std::string& repository_path,
                        const StrayNote& note);

/// Notes bytes after the last container of segments and volumes, and after the last page of the
/// catalog. Leaves out files that an open version writes. Readers never read the noted bytes.
/// `open_store` is empty if all data is on the disk.
void note_trailing_bytes(const meta::Env& catalog, io::FileSystem& files,
                         const store::StoreOpener& open_store, const std::string& repository_path,
                         const StrayNote& note);

}  // namespace varve::maintain
