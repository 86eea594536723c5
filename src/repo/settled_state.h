// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "repo/repository_folder.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::repo {

/// Compares a catalog with the labels and manifests. `is_settled` tells whether the last writer
/// left no work; the function calls it if labels have as many versions as the catalog.
/// Errors: kCorrupt if the catalog is older than the rest of the repository, or of another state.
[[nodiscard]] Result<void> compare_catalog(io::FileSystem& files, const format::DataCodecs& codecs,
                                           const store::StoreOpener& open, const std::string& root,
                                           const meta::Env& catalog,
                                           const std::function<bool()>& is_settled);

/// Tells whether the last writer left work behind, and whether the present writer does
/// (docs/ORDERING.md O37). Also tells whether the catalog is older than the rest of the repository.
/// Thread-safe, except read_note(), check_catalog_age() and complete_catalog(), which belong to the
/// opening.
class SettledState {
 public:
  /// Lifetime: `folder` outlives the object.
  explicit SettledState(RepositoryFolder& folder) : folder_(folder) {}

  /// Reads the note of the last writer.
  [[nodiscard]] Result<SettledMark::Note> read_note();
  /// Returns whether the note on disk says that the last writer left no work.
  [[nodiscard]] bool has_note() const;
  /// Notes at the end of the last change that no work is left, except arranging of the series
  /// `unarranged`; nullopt for any series. Does nothing if work is left. Logs errors.
  void write_note(const std::optional<std::set<SeriesId>>& unarranged);
  /// Returns whether the last writer left nothing behind, as of read_note().
  [[nodiscard]] bool was_settled() const { return was_settled_; }
  /// Returns whether the next opening of the repository has something to complete.
  [[nodiscard]] bool leaves_work() const { return leaves_work_; }
  void set_leaves_work(bool leaves_work) { leaves_work_ = leaves_work; }

  /// Completes the last writer's unfinished files beside the catalog, except the files of series.
  /// Returns whether all is complete.
  [[nodiscard]] Result<bool> complete_catalog();

  /// Returns Repository::has_older_catalog().
  [[nodiscard]] Result<bool> has_older_catalog() const;
  /// Errors: kCorrupt if the catalog is older than the labels.
  [[nodiscard]] Result<void> refuse_older_catalog() const;
  /// Puts the damage "the catalog is older than the labels" first, if the catalog is older: newer
  /// files then seem unknown, and removed files seem lost.
  void add_older_catalog(std::vector<Damage>& damages) const;
  /// Logs a warning if the catalog is older than the labels.
  void warn_of_older_catalog() const;
  /// Refuses a catalog older than the rest of the repository. Gives the catalog its id, if needed.
  [[nodiscard]] Result<void> check_catalog_age();

 private:
  RepositoryFolder& folder_;
  std::string catalog_id_;                // Of read_note() or check_catalog_age().
  bool was_settled_ = false;              // The last writer left nothing behind.
  std::atomic<bool> leaves_work_ = true;  // The next opening has something to complete.
};

}  // namespace varve::repo
