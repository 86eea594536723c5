// SPDX-License-Identifier: Apache-2.0
// What lies in a repository's folder without being a part of the repository.
#pragma once

#include <functional>
#include <string>

#include "io/file_system.h"
#include "meta/lmdb.h"

namespace varve::maintain {

using StrayNote = std::function<void(std::string where, std::string what)>;

/// Notes files and folders whose names Varve never gives, up to a bound. Does not enter unknown
/// folders.
void note_unknown_files(io::FileSystem& files, const std::string& repository_path,
                        const StrayNote& note);

/// Notes bytes behind the last container of segments and volumes that no open version writes, and
/// behind the last page of the catalog. Readers never look at these.
void note_trailing_bytes(const meta::Env& catalog, io::FileSystem& files,
                         const std::string& repository_path, const StrayNote& note);

}  // namespace varve::maintain
