// SPDX-License-Identifier: Apache-2.0
// The names of Varve's files and folders in a repository. Varve neither reads, changes nor removes
// files with other names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "io/file_system.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::store {

/// The end of the name of an incomplete file.
inline constexpr std::string_view kTemporarySuffix = ".tmp";

/// The kinds of folders in a repository.
enum class FolderKind : std::uint8_t {
  kRepository,   ///< The top: varve.repo, lock, catalog/, series/, …
  kEnvironment,  ///< LMDB's files: catalog/, and overlay/ of an open version.
  kAllSeries,    ///< series/: a folder for each series.
  kSeries,       ///< series/NNNNNNNN/.
  kActive,       ///< Segments of a series.
  kVolumes,      ///< Volumes of a series.
  kManifests,    ///< Manifests of a series.
  kParity,       ///< Parity files of a series.
  kPool,         ///< pool/: the containers shared by series, and their index.
  kStaging,      ///< staging/: a folder for each open version.
  kOpenVersion,  ///< staging/NNNNNNNN-NNNNNNNN/.
  kStagedFiles,  ///< files/ of an open version.
};

/// The meaning of a name with the exact form of Varve's names.
struct KnownName {
  /// The kind of folder; nullopt for a file.
  std::optional<FolderKind> folder;
};

/// Returns the meaning of `name` in a folder of the kind `folder`, or nullopt for a name never used
/// by Varve. A known name does not imply that the catalog still needs the file.
[[nodiscard]] std::optional<KnownName> known_name(FolderKind folder, std::string_view name);

/// The file with a series' files beside its versions.
inline constexpr std::string_view kBesideName = "beside";

/// An open version's folder in staging/: SERIES-NUMBER.
struct StagingName {
  SeriesId series{};
  VersionNumber number{};
};
[[nodiscard]] std::string staging_name(SeriesId series, VersionNumber number);
[[nodiscard]] std::optional<StagingName> parse_staging_name(std::string_view name);

/// Returns the name of a snapshot of the neighbour index: index-NNNNNNNN.snap.
[[nodiscard]] std::string snapshot_name(VersionNumber number);
/// Returns the version in a snapshot's name.
[[nodiscard]] std::optional<VersionNumber> parse_snapshot_name(std::string_view name);

/// Returns the name of a run of the neighbour index: index-NNNNNNNN.run.
[[nodiscard]] std::string index_run_name(std::uint32_t number);
/// Returns the number in a run's name.
[[nodiscard]] std::optional<std::uint32_t> parse_index_run_name(std::string_view name);

/// The name of the snapshot with the list of the pool index's runs.
inline constexpr std::string_view kPoolSnapshotName = "index.snap";

/// Returns the name of a file of aliases of the pool: aliases-NNNNNNNN.als.
[[nodiscard]] std::string alias_file_name(std::uint32_t number);
/// Returns the number in an alias file's name, without kTemporarySuffix.
[[nodiscard]] std::optional<std::uint32_t> parse_alias_file_name(std::string_view name);
/// Returns the name of a file in which the pool sorts records: sort-NNNNNNNN.tmp. The file is
/// meaningless once its process has ended.
[[nodiscard]] std::string sorting_name(std::uint32_t number);
[[nodiscard]] bool is_sorting_name(std::string_view name);

/// Returns the name of the file with the states of a version's source files: sources-NNNNNNNN.dat.
[[nodiscard]] std::string sources_name(VersionNumber number);
/// Returns the name of the same file until `varve store` has sealed the version. The name marks a
/// version that is to become equal to its source, and may not be equal yet.
[[nodiscard]] std::string unfinished_sources_name(VersionNumber number);
/// Returns the version in the name of a file of source states, without kTemporarySuffix.
[[nodiscard]] std::optional<VersionNumber> parse_sources_name(std::string_view name);

/// Lists the folders needed by every use of a repository, so that the file system refuses links,
/// mounts and other users' folders at once (io::open_root()). A missing folder is no error.
[[nodiscard]] Result<void> check_folders(io::FileSystem& files, const std::string& repository);

/// Removes the files and folders with known names from `path`, then the folder itself. Keeps
/// unknown names and their parent folders, without an error. A missing folder is no error.
/// Errors: the errors of the file system for a known name.
[[nodiscard]] Result<void> remove_folder(io::FileSystem& files, const std::string& path,
                                         FolderKind kind);

}  // namespace varve::store
