// SPDX-License-Identifier: Apache-2.0
// Decides the version from which `varve store` starts, and the source files to read.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "transfer/source_clock.h"
#include "transfer/source_states.h"
#include "transfer/tree_importer.h"
#include "varve/backup.h"
#include "varve/repository.h"
#include "varve/result.h"

namespace varve::io {
class FileSystem;
}  // namespace varve::io

namespace varve::repo {

/// The states of a source directory's files, from the last store and for the next store. The states
/// are derived data: if missing, damaged or in doubt, every file is read. Not thread-safe.
class SourceMemory {
 public:
  /// `source`: the directory's path without symlinks.
  /// Lifetime: the other arguments outlive the object.
  SourceMemory(Repository& repository, io::FileSystem& files, const StoreRequest& request,
               const std::string& source);

  /// Opens a version of the series. Starts with a clone of the newest version if the newest version
  /// was stored from the same source.
  /// Errors: as for Repository::open_version().
  [[nodiscard]] Result<VersionInfo> open_version(SeriesId series, const NewFile& root);
  /// Continues an open version if a store of the same source began the version: returns true.
  /// Otherwise the store only adds and replaces entries.
  [[nodiscard]] Result<bool> resume(const VersionInfo& info);
  /// Returns whether a store of any source began the open version.
  [[nodiscard]] Result<bool> any_began(const VersionInfo& info);
  /// Errors: kBusy if a store of another directory began the open version and was interrupted.
  [[nodiscard]] Result<void> check_no_other_began(const VersionInfo& info);
  /// The newest sealed version of a series, and the states of its files; null if none are known.
  struct Known {
    VersionInfo version;
    std::unique_ptr<transfer::SourceStates> states;
  };
  /// Returns the source states known to a store, without any change; nullopt without a version.
  [[nodiscard]] std::optional<Known> look(SeriesId series);
  /// Returns the clock of the source. Lifetime: as the SourceMemory.
  [[nodiscard]] transfer::SourceClock& clock() { return clock_; }
  /// Ends the store of a version that stays open. The next store removes no entries of the version.
  [[nodiscard]] Result<void> finish();
  /// Returns the tracking of the import; null if the version is to be stored in the usual way.
  /// Lifetime: as the SourceMemory.
  [[nodiscard]] const transfer::SourceTracking* tracking() const {
    return states_ ? &tracking_ : nullptr;
  }
  /// Returns the states of the version, for the seal. May be null.
  [[nodiscard]] std::shared_ptr<transfer::SourceStatesWriter> states() const { return states_; }

 private:
  [[nodiscard]] Result<VersionInfo> open_new(SeriesId series, VersionNumber source,
                                             const NewFile& root);
  [[nodiscard]] std::string directory(SeriesId series) const;
  [[nodiscard]] transfer::SourceStatesHeader new_header(SeriesId series);
  [[nodiscard]] std::unique_ptr<transfer::SourceStates> states_of(const VersionInfo& version);
  [[nodiscard]] std::optional<transfer::SourceStatesHeader> find_beginning(const VersionInfo& info,
                                                                           VersionNumber number);
  [[nodiscard]] Result<void> announce(SeriesId series, const VersionInfo* base);
  [[nodiscard]] Result<void> track(const VersionInfo& info, const VersionInfo* base);

  Repository& repository_;
  io::FileSystem& files_;  // Of the repository.
  const StoreRequest& request_;
  const Timestamp started_at_;
  transfer::SourceClock clock_;
  std::uint64_t source_ = 0;
  std::uint64_t root_inode_ = 0;
  std::unique_ptr<transfer::SourceStates> previous_;
  std::shared_ptr<transfer::SourceStatesWriter> states_;
  transfer::SourceTracking tracking_;
};

/// Completes the states for a sealed version, and removes the states of earlier versions.
void keep_states(Repository& repository, io::FileSystem& files,
                 transfer::SourceStatesWriter& states, const VersionInfo& sealed);

}  // namespace varve::repo
