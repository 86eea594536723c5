// SPDX-License-Identifier: Apache-2.0
// A repository: series of versions in one folder.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "varve/options.h"
#include "varve/rank_table.h"
#include "varve/result.h"
#include "varve/retention.h"
#include "varve/types.h"
#include "varve/version_reader.h"
#include "varve/version_writer.h"

namespace varve {

/// Sizes of a repository, all in bytes unless the name says otherwise.
struct RepositoryStats {
  std::uint64_t series = 0;
  std::uint64_t versions_sealed = 0;
  std::uint64_t versions_open = 0;
  std::uint64_t logical_bytes = 0;    ///< Sum over the sealed versions.
  std::uint64_t unique_bytes = 0;     ///< Raw bytes of all stored chunks.
  std::uint64_t frame_bytes = 0;      ///< The same as stored, after compression.
  std::uint64_t container_bytes = 0;  ///< Frames with headers, tables and padding.
  std::uint64_t containers = 0;
  std::uint64_t chunks = 0;
  std::uint64_t catalog_bytes = 0;  ///< Files under catalog/.
  std::uint64_t index_bytes = 0;    ///< Snapshots of the neighbour indexes.
  std::uint64_t staging_bytes = 0;  ///< Overlays of open versions.
  std::uint64_t parity_bytes = 0;   ///< Parity files.
};

/// What statfs(2) says of the disk below the repository.
struct SpaceInfo {
  std::uint64_t block_bytes = 0;
  std::uint64_t blocks = 0;
  std::uint64_t blocks_free = 0;
  std::uint64_t blocks_available = 0;
  std::uint64_t files = 0;
  std::uint64_t files_free = 0;
};

/// What sealing did, for a mounted file system that has to translate inode numbers.
struct SealOutcome {
  VersionInfo info;
  RankTable rank_of;  ///< The sealed entries' ranks.
  /// A sentence for the user about a clock that is behind the versions before; usually empty.
  std::string warning;
  /// The version that goes on from here, if the seal was to keep one open.
  std::optional<VersionInfo> next;
};

/// What a seal leaves behind.
enum class SealMode : std::uint8_t {
  kEnd,   ///< The sealed version.
  kKeep,  ///< Beside it, an open version of the old name that starts as a clone of it.
};

/// What a seal does about files of the version that are open for writing.
enum class SealWriters : std::uint8_t {
  kRefuse,  ///< The seal fails with kBusy.
  kCutOff,  ///< The version gets what they wrote so far; their next write fails with kReadOnly.
};

/// An opened repository. Thread-safe. At most one process has it open for writing; any
/// number may read beside it.
class Repository {
 public:
  /// Makes a repository in `path`, which must be empty or absent, with the folders above it.
  /// `trust_owner` as in OpenOptions.
  [[nodiscard]] static Result<void> create(const std::string& path,
                                           const RepositoryParameters& parameters,
                                           bool trust_owner = false);
  /// kNoRepository, kUnsupported, kCorrupt or kLocked (another writer) say why it failed.
  [[nodiscard]] static Result<std::unique_ptr<Repository>> open(const std::string& path,
                                                                const OpenOptions& options);
  virtual ~Repository() = default;

  /// Ends background work and makes open versions durable. Call it before destruction to
  /// learn of errors.
  [[nodiscard]] virtual Result<void> close() = 0;

  /// Makes all open versions durable. An error names each version for which that failed, and what
  /// a crash would lose of it.
  [[nodiscard]] virtual Result<void> sync() = 0;

  [[nodiscard]] virtual const std::string& path() const = 0;
  [[nodiscard]] virtual bool read_only() const = 0;
  [[nodiscard]] virtual const RepositoryParameters& parameters() const = 0;

  [[nodiscard]] virtual Result<std::vector<SeriesInfo>> series() = 0;
  [[nodiscard]] virtual Result<SeriesInfo> find_series(std::string_view name) = 0;
  [[nodiscard]] virtual Result<SeriesInfo> create_series(std::string_view name) = 0;
  /// Only an empty series goes (kNotEmpty).
  [[nodiscard]] virtual Result<void> remove_series(std::string_view name) = 0;

  /// Sealed and open versions in ascending number. A read-only repository shows only the
  /// sealed ones. The sizes of open ones are 0: see open_versions().
  [[nodiscard]] virtual Result<std::vector<VersionInfo>> versions(SeriesId series) = 0;
  /// The open version, if there is one, also of a read-only repository: with the entries and bytes
  /// that it had at the last checkpoint.
  [[nodiscard]] virtual Result<std::vector<VersionInfo>> open_versions(SeriesId series) = 0;
  /// By name, or the newest sealed one for "latest".
  [[nodiscard]] virtual Result<VersionInfo> find_version(SeriesId series,
                                                         std::string_view name) = 0;

  /// The open version that open_version() and clone_version() would seal first, or nullopt if the
  /// series has none. kBusy if it must not be sealed by that: it is partial or empty, has files
  /// open for writing, or was written to within OpenOptions::autoseal_s.
  [[nodiscard]] virtual Result<std::optional<VersionInfo>> version_to_end(SeriesId series) = 0;
  /// Opens a new version, after sealing the one that version_to_end() tells. kBusy as there;
  /// kExists if the name is taken or reserved.
  [[nodiscard]] virtual Result<VersionInfo> open_version(SeriesId series, std::string_view name,
                                                         const NewFile& root) = 0;
  /// The series' open version, or kNotFound.
  [[nodiscard]] virtual Result<std::shared_ptr<VersionWriter>> writer(SeriesId series) = 0;
  [[nodiscard]] virtual Result<std::shared_ptr<VersionReader>> reader(SeriesId series,
                                                                      VersionNumber number) = 0;

  /// Seals an open version under `new_name` ("" keeps its name, without ".partial").
  /// When it returns, the version is on disk. kBusy while files are open for writing, unless
  /// `writers` says to cut them off.
  [[nodiscard]] virtual Result<SealOutcome> seal(SeriesId series, VersionNumber number,
                                                 std::string_view new_name,
                                                 SealMode mode = SealMode::kEnd,
                                                 SealWriters writers = SealWriters::kRefuse) = 0;
  /// Opens a new version, as open_version() does, whose tree is that of a sealed version of
  /// the series. From the newest one this takes no longer for a larger tree; from an older one
  /// it visits every file, and stores anew what the newest does not have.
  [[nodiscard]] virtual Result<VersionInfo> clone_version(SeriesId series, VersionNumber source,
                                                          std::string_view name) = 0;
  /// Gives a sealed version, or an open one of the same kind, another name.
  [[nodiscard]] virtual Result<void> rename_version(SeriesId series, VersionNumber number,
                                                    std::string_view new_name) = 0;
  /// Drops an open version (kNotEmpty unless its tree is empty or `force`).
  [[nodiscard]] virtual Result<void> abandon_version(SeriesId series, VersionNumber number,
                                                     bool force) = 0;

  // ---- Retention and arranging; see varve/retention.h. ----

  /// What delete_versions() of the same set would do. kNotFound if one of them is not there,
  /// kInvalid if one is open (abandon_version() drops those).
  [[nodiscard]] virtual Result<DeletionForecast> forecast_deletion(
      SeriesId series, const std::vector<VersionNumber>& numbers,
      const DeletionOptions& options = {}) = 0;
  /// Deletes sealed versions in one step: all of them or none, or with DeletionOptions::skip_held
  /// all that nothing holds. Copies no chunk data. The space is back when the call returns. Works
  /// on a full disk.
  /// Errors: those of forecast_deletion(); kNotPermitted before the end of a lock; kBusy while a
  /// version has open files, or an open version is based on it.
  [[nodiscard]] virtual Result<DeletionForecast> delete_versions(
      SeriesId series, const std::vector<VersionNumber>& numbers,
      const DeletionOptions& options = {}) = 0;
  /// Refuses deletion of a sealed version until then. A lock can only be made longer:
  /// kNotPermitted for an earlier time than it has.
  [[nodiscard]] virtual Result<void> lock_version(SeriesId series, VersionNumber number,
                                                  Timestamp until) = 0;
  /// Of every sealed version, in ascending number.
  [[nodiscard]] virtual Result<std::vector<VersionUsage>> version_usage(SeriesId series) = 0;
  /// By file, then by birth; those of the active set come last.
  [[nodiscard]] virtual Result<std::vector<CategoryInfo>> categories(SeriesId series) = 0;
  [[nodiscard]] virtual Result<ArrangingDebt> arranging_debt(SeriesId series) = 0;
  [[nodiscard]] virtual Result<ArrangeSettings> arrange_settings() = 0;
  /// kInvalid if a value is out of its range.
  [[nodiscard]] virtual Result<void> set_arrange_settings(const ArrangeSettings& settings) = 0;
  /// Arranges a series until the policy has nothing left to do, it is stopped or the disk is
  /// full. Runs beside reading and writing. What a crash interrupts is done again.
  [[nodiscard]] virtual Result<ArrangeReport> arrange(SeriesId series,
                                                      const ArrangeOptions& options) = 0;

  [[nodiscard]] virtual Result<RepositoryStats> stats() = 0;
  [[nodiscard]] virtual Result<SpaceInfo> space() = 0;
};

/// True for a name that only a rename without the suffix seals.
[[nodiscard]] bool is_partial_name(std::string_view name);

}  // namespace varve
