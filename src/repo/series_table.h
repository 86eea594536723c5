// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "repo/repository_folder.h"
#include "series/series.h"
#include "series/series_host.h"
#include "varve/beside.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::repo {

class RequiredFeatures;
class SeriesResources;
class SettledState;

/// Returns the settings of a series after changes.
[[nodiscard]] SeriesSettings changed_settings(const SeriesSettings& present,
                                              const SeriesOptions& changes);
/// Errors: kUnsupported for settings unknown to the build.
[[nodiscard]] Result<void> check_series_settings(const SeriesSettings& settings);

/// The series of an open repository: the records in the catalog, and the object of each series in
/// use. Functions named as functions of Repository have the same errors. Thread-safe. Lock order:
/// mutex_ is innermost; no series is called with mutex_ held.
class SeriesTable {
 public:
  /// `host` receives the calls of the series. Lifetime: the arguments outlive the object.
  SeriesTable(RepositoryFolder& folder, SettledState& settled_state, SeriesResources& resources,
              RequiredFeatures& features, series::SeriesHost& host)
      : folder_(folder),
        settled_state_(settled_state),
        resources_(resources),
        features_(features),
        host_(host) {}

  [[nodiscard]] Result<std::vector<SeriesInfo>> list() const;
  [[nodiscard]] Result<SeriesInfo> find_named(std::string_view name) const;
  /// Returns a series. The first call makes the object.
  /// Lifetime: the object lives as long as the table. Errors: kNotFound.
  [[nodiscard]] Result<series::Series*> find(SeriesId id);
  /// Returns the files of programs beside the versions of a series.
  [[nodiscard]] Result<std::shared_ptr<BesideFiles>> beside(SeriesId id);

  [[nodiscard]] Result<SeriesInfo> create(std::string_view name, const SeriesOptions& options);
  [[nodiscard]] Result<SeriesSettings> change(SeriesId id, const SeriesOptions& changes);
  [[nodiscard]] Result<void> rename(SeriesId id, std::string_view new_name);

  /// Writes the labels of all series. Logs errors.
  void write_all_labels();
  /// Completes the manifests of all series. Returns whether all are complete; logs the errors of
  /// single series.
  [[nodiscard]] Result<bool> complete_manifests();

  /// Writes again the labels and manifests whose last write failed.
  /// Errors: kIncomplete with all errors of the writes.
  [[nodiscard]] Result<void> write_left_files();

  /// Makes the open versions of all series durable.
  [[nodiscard]] Result<void> sync();
  /// Stops the background work of all series.
  void stop();
  /// Stops all series, and drops their open versions from memory.
  void release();

 private:
  /// Returns the series used since the opening.
  [[nodiscard]] std::vector<series::Series*> used();
  /// Writes the labels of a series whose record has changed; all labels if the superblock has
  /// changed.
  void write_labels_after_change(SeriesId id);
  /// Returns whether labels name the last commit of this catalog, so that they reveal each older
  /// catalog.
  [[nodiscard]] Result<bool> have_newest_stamp(SeriesId id) const;

  RepositoryFolder& folder_;
  SettledState& settled_state_;
  SeriesResources& resources_;
  RequiredFeatures& features_;
  series::SeriesHost& host_;
  std::mutex mutex_;  // Guards the members below.
  std::map<SeriesId, std::unique_ptr<series::Series>> series_;
  std::map<SeriesId, std::shared_ptr<BesideFiles>> beside_;
  std::uint32_t next_id_ = 1;  // Ids are not reused, because removed series stay in series_.
};

}  // namespace varve::repo
