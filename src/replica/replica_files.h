// SPDX-License-Identifier: Apache-2.0
// The files of a repository that belong into the object store.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
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

/// The signs of a file that need no reading, and its mark. A file whose look stays the same has
/// the same content: all files of the repository but the segments and volumes are replaced by
/// others, and never written again in place.
struct FileLook {
  std::uint64_t bytes = 0;
  std::uint64_t inode = 0;
  std::int64_t modified_ns = 0;  ///< Since 1970.
  std::int64_t changed_ns = 0;   ///< The inode's time, since 1970.
  std::uint64_t mark = 0;

  bool operator==(const FileLook&) const = default;
};
[[nodiscard]] std::string encode_look(const FileLook& look);
/// Returns nullopt for a damaged look, which counts as none.
[[nodiscard]] std::optional<FileLook> decode_look(std::string_view value);

/// The looks that a folder remembers, and the work of a round of looking.
struct LookingRound {
  /// Returns the remembered look of a file.
  std::function<Result<std::optional<FileLook>>(const std::string& path)> known{};
  std::map<std::string, FileLook> noted{};  ///< Looks to remember, by the files' paths.
  std::uint64_t files_read = 0;
  std::uint64_t bytes_read = 0;
};

/// Returns the folder of a series in the repository.
[[nodiscard]] std::string series_folder(SeriesId id);
/// Returns the folders of all stores that a catalog has: those of the series, and `pool`.
[[nodiscard]] Result<std::map<StoreId, std::string>> store_folders(const meta::Txn& catalog);

/// Returns the segments and volumes that a catalog names, up to the ends that it names.
[[nodiscard]] Result<std::vector<ReplicaFile>> data_files(const meta::Txn& catalog);

/// Returns the other files that a reader or a repair needs: labels, files beside the versions,
/// manifests, parity and aliases. `files` shows them as they are on disk. A file that is removed
/// meanwhile may be missing. Reads only files that look different from what `looking` knows.
[[nodiscard]] Result<std::vector<ReplicaFile>> other_files(io::FileSystem& files,
                                                           const std::string& root,
                                                           const meta::Txn& catalog,
                                                           LookingRound& looking);

}  // namespace varve::replica
