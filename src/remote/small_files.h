// SPDX-License-Identifier: Apache-2.0
// The files of an attached folder that are copies of small objects: labels, manifests, files beside
// the versions, parity and aliases.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "bucket/bucket.h"
#include "io/file_system.h"
#include "remote/changes.h"
#include "varve/result.h"

namespace varve::remote {

/// Selects files by their paths in the repository.
using WantedPath = std::function<Result<bool>(const std::string& path)>;

/// Downloads the wanted small files of a map of objects into the folder at `root`, and replaces
/// present files. Reads the copy of a lost object. Returns the paths of the files lost in the store
/// with the copies; the folder's lost files stay unchanged. Errors: errors of the bucket and the
/// disk.
[[nodiscard]] Result<std::set<std::string>> fetch_small_files(bucket::Bucket& bucket,
                                                              io::FileSystem& files,
                                                              const std::string& root,
                                                              const ObjectMap& map,
                                                              const WantedPath& is_wanted);
/// Downloads the small files missing in the folder, as fetch_small_files() does.
[[nodiscard]] Result<std::set<std::string>> fetch_missing_files(bucket::Bucket& bucket,
                                                                io::FileSystem& files,
                                                                const std::string& root,
                                                                const ObjectMap& map);

}  // namespace varve::remote
