// SPDX-License-Identifier: Apache-2.0
// The names that Varve gives to the files and folders of a repository. Any other name belongs to
// somebody else: Varve neither reads, changes nor removes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "io/file_system.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::store {

/// A folder of a repository, by what it holds.
enum class FolderKind : std::uint8_t {
  kRepository,   ///< The top: varve.repo, lock, catalog/, series/, …
  kEnvironment,  ///< LMDB's files: catalog/, and overlay/ of an open version.
  kAllSeries,    ///< series/: a folder for each series.
  kSeries,       ///< series/NNNNNNNN/.
  kActive,       ///< Segments of a series.
  kVolumes,      ///< Volumes of a series.
  kManifests,    ///< Manifests of a series.
  kParity,       ///< Parity files of a series.
  kStaging,      ///< staging/: a folder for each open version.
  kOpenVersion,  ///< staging/NNNNNNNN-NNNNNNNN/.
  kStagedFiles,  ///< files/ of an open version.
};

/// What a name of the exact form that Varve gives stands for.
struct KnownName {
  /// The kind of folder; nullopt for a file.
  std::optional<FolderKind> folder;
};

/// Returns what `name` stands for in a folder of this kind, or nullopt if Varve never gives it.
/// Whether the catalog still needs the file is another question.
[[nodiscard]] std::optional<KnownName> known_name(FolderKind folder, std::string_view name);

/// An open version's folder in staging/: SERIES-NUMBER.
struct StagingName {
  SeriesId series{};
  VersionNumber number{};
};
[[nodiscard]] std::string staging_name(SeriesId series, VersionNumber number);
[[nodiscard]] std::optional<StagingName> parse_staging_name(std::string_view name);

/// The version of a snapshot of the neighbour index: index-NNNNNNNN.snap.
[[nodiscard]] std::optional<VersionNumber> parse_snapshot_name(std::string_view name);

/// Looks at the folders of a repository that every use of it goes through, so that links, mounts
/// and folders of others are refused at once (io::open_root()). A missing folder is no error.
[[nodiscard]] Result<void> check_folders(io::FileSystem& files, const std::string& repository);

/// Removes the files and folders with known names from `path`, then the folder itself. Keeps
/// unknown names and the folders that hold them; that is no error. A missing folder is no error.
/// Errors: what the file system answers when a known name cannot be removed.
[[nodiscard]] Result<void> remove_folder(io::FileSystem& files, const std::string& path,
                                         FolderKind kind);

}  // namespace varve::store
