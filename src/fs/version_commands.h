// SPDX-License-Identifier: Apache-2.0
// Changes of versions, requested from a mount's daemon by commands.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "control/requests.h"
#include "fs/node_table.h"
#include "fs/version_changes.h"
#include "varve/backup.h"
#include "varve/repository.h"
#include "varve/result.h"
#include "varve/retention.h"
#include "varve/types.h"

namespace varve::fs {

/// Opens, seals and deletes versions for commands, and notifies the kernel. Thread-safe. Must not
/// be called for a request of the kernel: the request may hold the directory needed by a
/// notification.
class VersionCommands {
 public:
  /// Lifetime: the arguments must outlive the object.
  VersionCommands(Repository& repository, NodeTable& nodes, VersionChanges& changes)
      : repository_(repository), nodes_(nodes), changes_(changes) {}

  /// Seals a version as the request says. The caller has found the version named by the request.
  /// Stops waiting once `cancelled` returns true.
  [[nodiscard]] Result<SealOutcome> seal(SeriesId series, VersionNumber number,
                                         const control::SealRequest& request,
                                         const std::function<bool()>& cancelled);
  /// Opens a version, after sealing the present version as Repository::open_version() does.
  /// Errors: kReadOnly if another folder writes to the repository in the object store.
  [[nodiscard]] Result<VersionInfo> open_version(const SeriesInfo& series, std::string_view name,
                                                 const NewFile& root);
  /// Opens a version with the tree of `source`, after sealing the present version.
  /// Errors: as open_version().
  [[nodiscard]] Result<VersionInfo> clone_version(const SeriesInfo& series, VersionNumber source,
                                                  std::string_view name);
  /// Drops an open version with all files of the version.
  /// Errors: kBusy while files are open for writing.
  [[nodiscard]] Result<void> discard_version(SeriesId series, VersionNumber number);
  /// Renames a sealed version.
  [[nodiscard]] Result<void> rename_version(const VersionInfo& version, std::string_view new_name);
  /// Renames a series without an open version.
  [[nodiscard]] Result<void> rename_series(const SeriesInfo& series, std::string_view new_name);
  /// Deletes sealed versions as Repository::delete_versions() does.
  [[nodiscard]] Result<DeletionForecast> delete_versions(SeriesId series,
                                                         const std::vector<VersionNumber>& numbers,
                                                         const DeletionOptions& options = {});

  /// Asks the store whether another folder writes, as StoreLink::learn_fence().
  /// Errors: kReadOnly if another folder writes.
  [[nodiscard]] Result<void> check_changes() const;

 private:
  /// Drops the slots of versions in `before` that were deleted from the repository.
  void drop_deleted(SeriesId series, const std::vector<VersionInfo>& before);

  Repository& repository_;
  NodeTable& nodes_;
  VersionChanges& changes_;
};

}  // namespace varve::fs
