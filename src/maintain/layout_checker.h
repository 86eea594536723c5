// SPDX-License-Identifier: Apache-2.0
// Whether the records of files, containers and locations agree with each other.
#pragma once

#include <functional>
#include <string>

#include "io/file_system.h"
#include "meta/lmdb.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::maintain {

/// `path`: of the file below the series' folder that it is about, "" if it is the catalog.
using LayoutDamage = std::function<void(std::string path, std::string what)>;

/// Calls `damage` for each contradiction: chunks located twice or in containers that are not
/// there, wrong sums of what lives where, births that descend in a volume, files that are shorter
/// than their records say. Reads the catalog and,
/// if asked, the files' lengths only.
[[nodiscard]] Result<void> check_layout(const meta::Txn& txn, io::FileSystem& files,
                                        const std::string& series_directory, SeriesId series,
                                        bool check_lengths, const LayoutDamage& damage);

}  // namespace varve::maintain
