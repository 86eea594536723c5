// SPDX-License-Identifier: Apache-2.0
// The names that Varve gives to the files and folders of a repository. Any other name is not
// Varve's: Varve neither reads, changes nor removes such a file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "io/file_system.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::store {

/// The end of the name of a file that is not complete yet.
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
  kPool,         ///< pool/: the containers that series share, and their index.
  kStaging,      ///< staging/: a folder for each open version.
  kOpenVersion,  ///< staging/NNNNNNNN-NNNNNNNN/.
  kStagedFiles,  ///< files/ of an open version.
};

/// The meaning of a name that has the exact form of Varve's names.
struct KnownName {
  /// The kind of folder; nullopt for a file.
  std::optional<FolderKind> folder;
};

/// Returns the meaning of `name` in a folder of this kind, or nullopt if Varve never uses such a
/// name. A known name does not say whether the catalog still needs the file.
[[nodiscard]] std::optional<KnownName> known_name(FolderKind folder, std::string_view name);

/// The file of a series with what programs keep beside its versions.
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
/// Returns the version of such a snapshot, from its name.
[[nodiscard]] std::optional<VersionNumber> parse_snapshot_name(std::string_view name);

/// Returns the name of a run of the neighbour index: index-NNNNNNNN.run.
[[nodiscard]] std::string index_run_name(std::uint32_t number);
/// Returns the number of such a run, from its name.
[[nodiscard]] std::optional<std::uint32_t> parse_index_run_name(std::string_view name);

/// The name of the snapshot that names the runs of the pool's index.
inline constexpr std::string_view kPoolSnapshotName = "index.snap";

/// Returns the name of a file of aliases of the pool: aliases-NNNNNNNN.als.
[[nodiscard]] std::string alias_file_name(std::uint32_t number);
/// Returns the number of such a file, from its name without kTemporarySuffix.
[[nodiscard]] std::optional<std::uint32_t> parse_alias_file_name(std::string_view name);
/// Returns the name of a file that the pool sorts records in: sort-NNNNNNNN.tmp. No such file means
/// anything once its process has ended.
[[nodiscard]] std::string sorting_name(std::uint32_t number);
[[nodiscard]] bool is_sorting_name(std::string_view name);

/// Returns the name of the states that a version's source files had: sources-NNNNNNNN.dat.
[[nodiscard]] std::string sources_name(VersionNumber number);
/// The same file until `varve store` has sealed the version: it marks a version that is to become
/// equal to its source, and may not be so yet.
[[nodiscard]] std::string unfinished_sources_name(VersionNumber number);
/// Returns the version of such a file, from its name without kTemporarySuffix.
[[nodiscard]] std::optional<VersionNumber> parse_sources_name(std::string_view name);

/// Looks at the folders of a repository that every use of it needs. The file system thus refuses
/// links, mounts and other users' folders at once (io::open_root()). A missing folder is no error.
[[nodiscard]] Result<void> check_folders(io::FileSystem& files, const std::string& repository);

/// Removes the files and folders with known names from `path`, then the folder itself. Keeps
/// unknown names and the folders that hold them; that is no error. A missing folder is no error.
/// Errors: those of the file system when a known name cannot be removed.
[[nodiscard]] Result<void> remove_folder(io::FileSystem& files, const std::string& path,
                                         FolderKind kind);

}  // namespace varve::store
