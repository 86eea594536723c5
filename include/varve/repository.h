// SPDX-License-Identifier: Apache-2.0
// A repository: series of versions in one folder.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "varve/metrics.h"
#include "varve/options.h"
#include "varve/pool_index.h"
#include "varve/repository_checks.h"
#include "varve/repository_settings.h"
#include "varve/result.h"
#include "varve/rewrite.h"
#include "varve/series_versions.h"
#include "varve/store_link.h"
#include "varve/storing.h"
#include "varve/types.h"
#include "varve/upkeep.h"

namespace varve {

struct CatalogCompaction;  // varve/arrange.h

/// Sizes of a repository, all in bytes unless the name says otherwise.
struct RepositoryStats {
  std::uint64_t series = 0;
  std::uint64_t versions_sealed = 0;
  std::uint64_t versions_open = 0;
  std::uint64_t logical_bytes = 0;     ///< Sum over the sealed versions.
  std::uint64_t unique_bytes = 0;      ///< Raw bytes of all stored chunks.
  std::uint64_t frame_bytes = 0;       ///< Stored bytes of the same chunks, after compression.
  std::uint64_t container_bytes = 0;   ///< Frames with headers, tables and padding.
  std::uint64_t pool_bytes = 0;        ///< The part of `container_bytes` in the pool.
  std::uint64_t pool_aliases = 0;      ///< Duplicates in the pool whose content is stored once.
  std::uint64_t pool_alias_bytes = 0;  ///< Raw bytes of the aliases.
  std::uint64_t pool_new_bytes = 0;    ///< Raw bytes in the pool not yet compared for duplicates.
  std::uint64_t containers = 0;
  std::uint64_t chunks = 0;
  std::uint64_t catalog_bytes = 0;       ///< Files under catalog/.
  std::uint64_t index_bytes = 0;         ///< Snapshots of the neighbour indexes.
  std::uint64_t staging_bytes = 0;       ///< Overlays of open versions.
  std::uint64_t parity_bytes = 0;        ///< Parity files.
  std::uint64_t catalog_free_bytes = 0;  ///< Free pages of the catalog, part of `catalog_bytes`.
  std::uint64_t manifest_bytes = 0;      ///< Manifests and labels.
  std::uint64_t reserve_bytes = 0;       ///< Space for deleting and sealing on a full disk.
  std::uint64_t repository_bytes = 0;    ///< All files of the repository.
  std::uint64_t sequence = 0;            ///< See Repository::sequence(); 0 if there is none.
};

/// Returns samples of further metrics. Thread-safe.
using MetricSource = std::function<std::vector<MetricSample>()>;

/// An opened repository. Each base class is the part of the repository for one task. Thread-safe.
/// At most one process can open a repository for writing; any number of processes can read at the
/// same time.
///
/// Common errors, of each function: kNotFound if the series or version does not exist; kReadOnly
/// for a change to a repository opened read-only; kNoSpace if the disk is too full for a change;
/// kCorrupt if needed metadata is damaged; kIo if the operating system reports an error.
class Repository : public SeriesVersions,
                   public RepositorySettings,
                   public RepositoryChecks,
                   public StoreLink,
                   public Storing {
 public:
  /// Creates a repository in `path`, with the folders above. `path` must be empty or absent.
  /// Errors: kInvalid or kUnsupported for parameters or keys out of range; kExists if `path` is a
  /// repository; kNotEmpty if `path` has other files; kIo if the folder cannot be made.
  [[nodiscard]] static Result<void> create(const std::string& path,
                                           const RepositoryParameters& parameters,
                                           const CreateOptions& options = {});
  /// Opens a repository. The caller must not open a repository already open in the same process:
  /// the catalog's locks belong to the process.
  /// Errors: kNoRepository if `path` has no repository; kUnsupported for a newer format; kCorrupt;
  /// kLocked if another process writes to the repository; kNotPermitted if the repository's owner
  /// is not trusted; kWrongKey without the key of an encrypted repository.
  [[nodiscard]] static Result<std::unique_ptr<Repository>> open(const std::string& path,
                                                                const OpenOptions& options);
  ~Repository() override = default;

  /// Stops background work and makes open versions durable. Call close() before destruction to
  /// learn of errors.
  /// Errors: those of sync() and write_left_files().
  [[nodiscard]] virtual Result<void> close() = 0;
  /// Writes again the files, from which a lost catalog is rebuilt, whose write failed after a
  /// change, for example on a full disk. The change itself is durable.
  /// Errors: kIncomplete if such a file still cannot be written.
  [[nodiscard]] virtual Result<void> write_left_files() = 0;
  /// Closes the repository as close() does, and replaces the catalog by a new file with only the
  /// used pages; close() does so if more than half of the pages are free. Only reads may follow.
  /// Errors: kBusy if another process reads the repository; kNoSpace; those of close(). The catalog
  /// then stays unchanged.
  [[nodiscard]] virtual Result<CatalogCompaction> compact_catalog() = 0;
  /// Makes all open versions durable. The error message names each failed version, and the data
  /// that a crash would lose.
  /// Errors: the code of the first failure.
  [[nodiscard]] virtual Result<void> sync() = 0;
  /// Returns the path given to open().
  [[nodiscard]] virtual const std::string& path() const = 0;
  /// Returns the present path of the repository's folder: the folder may have been moved since
  /// open().
  [[nodiscard]] virtual std::string present_path() = 0;
  /// Returns true if the repository was opened read-only.
  [[nodiscard]] virtual bool read_only() const = 0;
  /// Returns the repository's id: 32 hexadecimal digits, random and fixed.
  [[nodiscard]] virtual std::string id() const = 0;
  /// Returns the sequence number of an encrypted repository, incremented by each seal, deletion,
  /// renaming, lock and change of settings or keys; nullopt for a plain repository. A number below
  /// an earlier number reveals a rollback of the repository to an older state.
  /// Errors: the common errors.
  [[nodiscard]] virtual Result<std::optional<std::uint64_t>> sequence() = 0;
  /// Returns the parameters fixed when the repository was created.
  [[nodiscard]] virtual const RepositoryParameters& parameters() const = 0;

  /// Returns all series.
  /// Errors: the common errors.
  [[nodiscard]] virtual Result<std::vector<SeriesInfo>> series() = 0;
  /// Returns the series with a name.
  /// Errors: kNotFound.
  [[nodiscard]] virtual Result<SeriesInfo> find_series(std::string_view name) = 0;
  /// Creates an empty series.
  /// Errors: kExists if the name is taken; kInvalid or kNameTooLong for an invalid name;
  /// kUnsupported for settings unknown to the build.
  [[nodiscard]] virtual Result<SeriesInfo> create_series(std::string_view name,
                                                         const SeriesOptions& options) = 0;
  /// Creates an empty series with the repository's defaults.
  /// Errors: as the function above.
  [[nodiscard]] Result<SeriesInfo> create_series(std::string_view name) {
    return create_series(name, SeriesOptions());
  }
  /// Renames a series.
  /// Errors: kExists if the name is taken; kInvalid or kNameTooLong for an invalid name; kBusy
  /// while a version of the series is open.
  [[nodiscard]] virtual Result<void> rename_series(SeriesId series, std::string_view new_name) = 0;
  /// Removes an empty series.
  /// Errors: kNotEmpty if the series has versions or files beside versions.
  [[nodiscard]] virtual Result<void> remove_series(std::string_view name) = 0;
  /// Returns the streams of the pool's index in the present process. Returns none before a version
  /// uses the index, or with another index than `stream`.
  /// Errors: those of reading the catalog.
  [[nodiscard]] virtual Result<std::vector<PoolStream>> pool_streams() = 0;
  /// Replaces the key slots of an encrypted repository by the key slots of a changed text of
  /// `varve.repo`. KeySlots::open_beside() makes such texts.
  /// Errors: kCorrupt for a text not written with the keys, and for the text of another repository;
  /// kBusy if the text does not follow the present slots; kNotPermitted if the repository is plain,
  /// and without a key beside recovery codes.
  [[nodiscard]] virtual Result<void> adopt_keys(std::string_view superblock) = 0;

  /// Returns the sizes of the repository.
  /// Errors: the common errors.
  [[nodiscard]] virtual Result<RepositoryStats> stats() = 0;
  /// Returns the size and the free space of the disk below the repository.
  /// Errors: kIo.
  [[nodiscard]] virtual Result<SpaceInfo> space() = 0;
  /// Returns the present values of all metrics of the process, ascending by name. Reads no disk.
  [[nodiscard]] virtual std::vector<MetricSample> metrics() = 0;
  /// Adds a source to metrics(), as a mount adds the metrics of its requests. The names of a
  /// source's metrics differ from all other names. Samples above 512 in all are left out.
  /// Lifetime: the source stays callable until the repository is destroyed.
  virtual void add_metrics(MetricSource source) = 0;
};

}  // namespace varve
