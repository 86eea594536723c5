// SPDX-License-Identifier: Apache-2.0
// The files of a repository to store in the object store.
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

namespace varve::remote {

/// A file, or the first bytes of a file.
struct ReplicaFile {
  std::string path{};       ///< In the repository.
  std::uint64_t bytes = 0;  ///< Number of bytes to store.
  /// Number that differs between contents; 0 for segments and volumes, whose bytes never change.
  std::uint64_t mark = 0;
};

/// The attributes of a file that need no reading, and the file's mark. Equal attributes mean equal
/// content: files other than segments and volumes are replaced by new files, and never written in
/// place.
struct FileLook {
  std::uint64_t bytes = 0;
  std::uint64_t inode = 0;
  std::int64_t modified_ns = 0;  ///< Since 1970.
  std::int64_t changed_ns = 0;   ///< The inode's change time, since 1970.
  std::uint64_t mark = 0;

  bool operator==(const FileLook&) const = default;
};
[[nodiscard]] std::string encode_look(const FileLook& look);
/// Returns nullopt for a damaged value, which counts as missing.
[[nodiscard]] std::optional<FileLook> decode_look(std::string_view value);

/// Remembered FileLooks, and the work of one scan.
struct LookingRound {
  /// Returns the remembered FileLook of a file.
  std::function<Result<std::optional<FileLook>>(const std::string& path)> known{};
  std::map<std::string, FileLook> noted{};  ///< FileLooks to remember, by the files' paths.
  std::uint64_t files_read = 0;
  std::uint64_t bytes_read = 0;
};

/// Returns the folder of a series in the repository.
[[nodiscard]] std::string series_folder(SeriesId id);
/// Returns the folders of all stores of a catalog: the folders of the series, and `pool`.
[[nodiscard]] Result<std::map<StoreId, std::string>> store_folders(const meta::Txn& catalog);

/// Returns the segments and volumes of a catalog, each up to its recorded end.
[[nodiscard]] Result<std::vector<ReplicaFile>> data_files(const meta::Txn& catalog);

/// Returns the remaining files needed by a reader or a repair: labels, files beside the versions,
/// manifests, parity and aliases. `files` shows files as they are on disk. A file removed meanwhile
/// may be missing. Reads only files whose attributes differ from `looking.known`.
[[nodiscard]] Result<std::vector<ReplicaFile>> other_files(io::FileSystem& files,
                                                           const std::string& root,
                                                           const meta::Txn& catalog,
                                                           LookingRound& looking);

}  // namespace varve::remote
