// SPDX-License-Identifier: Apache-2.0
// The files of an attached folder that are copies of small objects: labels, manifests, files beside
// the versions, parity and aliases.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bucket/bucket.h"
#include "io/file_system.h"
#include "remote/changes.h"
#include "varve/result.h"

namespace varve::remote {

/// A file of the map of objects.
using MappedFile = std::pair<std::string, std::vector<Extent>>;

/// Returns whether the extents are those of a small file, which has a mark.
[[nodiscard]] bool is_small(const std::vector<Extent>& extents);
/// Creates the folders above a file. The folders are durable once the file is.
[[nodiscard]] Result<void> make_folders(io::FileSystem& files, const std::string& root,
                                        const std::string& path);
/// Removes a file, if present.
[[nodiscard]] Result<void> remove_small(io::FileSystem& files, const std::string& root,
                                        const std::string& path);
/// Downloads files, many at the same time, and removes the local files lost by the store: older
/// content may contradict the catalog. Returns the lost files. Errors: errors of the bucket and the
/// disk.
[[nodiscard]] Result<std::set<std::string>> download_small(bucket::Bucket& bucket,
                                                           io::FileSystem& files,
                                                           const std::string& root,
                                                           const std::vector<MappedFile>& wanted);

/// Downloads the small files missing in the folder, as download_small() does.
[[nodiscard]] Result<std::set<std::string>> fetch_missing_files(bucket::Bucket& bucket,
                                                                io::FileSystem& files,
                                                                const std::string& root,
                                                                const ObjectMap& map);

}  // namespace varve::remote
