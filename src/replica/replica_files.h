// SPDX-License-Identifier: Apache-2.0
// The files of a repository that belong into the object store.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "io/file_system.h"
#include "meta/lmdb.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::replica {

/// A file, or the first bytes of it.
struct ReplicaFile {
  std::string path{};       ///< In the repository.
  std::uint64_t bytes = 0;  ///< So many bytes belong into the store.
  /// Number that tells contents apart; 0 for segments and volumes, whose bytes never change.
  std::uint64_t mark = 0;
};

/// Returns the folder of a series in the repository.
[[nodiscard]] std::string series_folder(SeriesId id);

/// Returns the segments and volumes that a catalog names, up to the ends that it names.
[[nodiscard]] Result<std::vector<ReplicaFile>> data_files(const meta::Txn& catalog);

/// Returns the other files that a reader or a repair needs: labels, files beside the versions,
/// manifests, parity and aliases. `files` shows them as they are on disk. A file that is removed
/// meanwhile may be missing.
[[nodiscard]] Result<std::vector<ReplicaFile>> other_files(io::FileSystem& files,
                                                           const std::string& root,
                                                           const meta::Txn& catalog);

}  // namespace varve::replica
