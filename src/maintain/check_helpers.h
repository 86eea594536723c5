// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "maintain/derived_faults.h"
#include "maintain/open_losses.h"
#include "store/folder_store.h"
#include "varve/result.h"

namespace varve::maintain {

/// Verifies the index of a series' newest sealed version, which is derived data. If empty, the
/// check leaves indexes out. Errors: kNotFound without an index; kCorrupt.
using VerifyIndex = std::function<Result<void>(SeriesId series, VersionNumber newest)>;

/// Reads all data of an open version in the staging folder, and returns the unreadable parts. If
/// empty, the check reads only the pages of overlays.
using ReadStaged =
    std::function<Result<std::vector<std::string>>(SeriesId series, VersionNumber number)>;

/// The parts of a check implemented in other rooms.
struct CheckHelpers {
  store::StoreOpener open_store{};  ///< Empty if all data is on the disk.
  /// False in an attached folder: the content of open versions is on the writing machine.
  bool has_open_versions = true;
  VerifyIndex verify_index{};
  ReadStaged read_staged{};
  FindUnstoredFiles find_unstored{};  ///< If empty, lost content of open versions has no names.
  /// Finds damaged files of the pool's index and damaged states of source files. If empty, the
  /// check leaves both out.
  std::function<Result<std::vector<DerivedFault>>()> derived_faults{};
  /// Returns whether labels that differ from the catalog are damage: the last writer noted that
  /// labels and catalog agree, and no writer has begun since. If empty, a difference may come from
  /// a writer or a crash.
  std::function<bool()> labels_are_complete{};
  /// True in an attached folder: all files but labels and `beside` are in an object store, whose
  /// check verifies the manifests. Also sets VerifyPace::is_distant.
  bool is_distant = false;
  /// Drops the cached data of an object store, so that a second read asks the store. If empty, all
  /// data is on the disk.
  std::function<void()> drop_cached{};
};

}  // namespace varve::maintain
