// SPDX-License-Identifier: Apache-2.0
// The data of the writer's folder missing in the object store. docs/decisions/100.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/file_system.h"
#include "remote/changes.h"
#include "varve/result.h"

namespace varve::remote {

/// A segment or volume on the disk.
struct LocalFile {
  std::string path{};  ///< Below the repository's folder.
  std::uint64_t bytes = 0;
  bool is_segment = false;
};
/// Returns the segments and volumes of the repository at `root` on the disk. Skips files removed
/// meanwhile.
[[nodiscard]] Result<std::vector<LocalFile>> list_local_files(io::FileSystem& files,
                                                              const std::string& root);

/// Returns the bytes of the staging files of open versions: data written out of order and not yet
/// cut into chunks.
[[nodiscard]] Result<std::uint64_t> uncut_bytes(io::FileSystem& files, const std::string& root);

/// Returns the bytes of the folder missing in the store: bytes of segments and volumes missing in
/// the map of the newest head, plus uncut_bytes().
[[nodiscard]] Result<std::uint64_t> staged_bytes(io::FileSystem& files, const std::string& root,
                                                 const ObjectMap& objects);

}  // namespace varve::remote
