// SPDX-License-Identifier: Apache-2.0
// One series of versions: the seam between the repository and the data of a series.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/id_runs.h"
#include "meta/lmdb.h"
#include "varve/arrange.h"
#include "varve/backup.h"
#include "varve/browse.h"
#include "varve/repository.h"
#include "varve/result.h"
#include "varve/retention.h"
#include "varve/rewrite.h"
#include "varve/types.h"
#include "version/open_version_check.h"

namespace varve::series {

class Manifests;
struct SeriesParts;
struct SeriesState;

/// Whether arranging gives way to writers.
enum class Pace : std::uint8_t { kAtOnce, kBackground };

/// The versions of one series, with an own chunk store (MFDedup, FAST'21 §3), or with the pool's.
/// A version gets the placement in the series' record at the version's opening. Thread-safe.
/// Functions named as functions of Repository are documented in varve/repository.h, and have the
/// same errors. After the series was removed, all functions return kNotFound.
class Series {
 public:
  /// Reads and writes no file: the first use of a version's data opens the stored chunks.
  /// Lifetime: the objects of `parts` outlive the series.
  explicit Series(const SeriesParts& parts);
  ~Series();
  Series(const Series&) = delete;
  Series& operator=(const Series&) = delete;

  /// Returns the parts, for the functions of usage.h and index_files.h.
  [[nodiscard]] const SeriesParts& parts() const;

  [[nodiscard]] Result<std::vector<VersionInfo>> versions();
  [[nodiscard]] Result<std::vector<VersionInfo>> open_versions(OpenSizes sizes);
  [[nodiscard]] Result<VersionInfo> find_version(std::string_view name);
  [[nodiscard]] Result<std::optional<VersionInfo>> version_to_end(std::string_view name,
                                                                  VersionNumber source);
  [[nodiscard]] Result<VersionInfo> open_version(std::string_view name, const NewFile& root);
  [[nodiscard]] Result<std::shared_ptr<VersionWriter>> writer();
  [[nodiscard]] Result<std::shared_ptr<VersionReader>> reader(VersionNumber number);
  [[nodiscard]] Result<SealOutcome> seal(VersionNumber number, std::string_view new_name,
                                         SealMode mode, SealWriters writers);
  [[nodiscard]] Result<VersionInfo> clone_version(VersionNumber source, std::string_view name);
  [[nodiscard]] Result<void> rename_version(VersionNumber number, std::string_view new_name);
  [[nodiscard]] Result<void> abandon_version(VersionNumber number, bool force);
  [[nodiscard]] Result<DeletionForecast> forecast_deletion(
      const std::vector<VersionNumber>& numbers, const DeletionOptions& options);
  [[nodiscard]] Result<DeletionForecast> delete_versions(const std::vector<VersionNumber>& numbers,
                                                         const DeletionOptions& options);
  [[nodiscard]] Result<void> check_deletion(VersionNumber number);
  [[nodiscard]] Result<void> lock_version(VersionNumber number, Timestamp until);
  /// Returns the sizes of every sealed version, or only of `only`.
  [[nodiscard]] Result<std::vector<VersionUsage>> version_usage(std::optional<VersionNumber> only);

  /// Arranges until the policy has no work left. Adds the work to `done`. Returns false if the
  /// caller or a deletion stopped arranging.
  [[nodiscard]] Result<bool> arrange(const ArrangeOptions& options, Pace pace,
                                     ArrangeProgress& done);
  /// Makes missing parity of an arranged series and removes unused parity. Logs a full disk or
  /// damage. Returns false if the caller stopped the work.
  [[nodiscard]] Result<bool> protect(const ArrangeOptions& options, ArrangeProgress& done);

  /// Reads everything in an open version's staging folder, in a repository opened read-only.
  /// Errors: as version::read_staged_state(); kNotFound if the version does not exist.
  [[nodiscard]] Result<version::StagedState> read_staged_state(VersionNumber number);
  /// Returns Repository::lost_chunks_stamp().
  [[nodiscard]] Result<std::uint64_t> lost_chunks_stamp();
  /// Hides quarantined chunks of the series' own store from the open version: the version stores
  /// the chunks' content again.
  void hide(const base::IdRuns& lost);
  /// Removes the series' record and files. Errors: kNotEmpty if the series has versions.
  [[nodiscard]] Result<void> remove();
  /// Returns the manifests and labels, from which a lost catalog is rebuilt. Lifetime: the
  /// series'.
  [[nodiscard]] Manifests& manifests();

  /// Makes the open version durable, if loaded.
  /// Errors: the failure's error, with the data that a crash would lose.
  [[nodiscard]] Result<void> sync();
  /// Stops the open version's background work.
  void stop();
  /// Drops the open version from memory. The repository calls release() before ending the read
  /// service.
  void release();

 private:
  const std::unique_ptr<SeriesState> state_;  ///< See series_state.h.
};

}  // namespace varve::series
