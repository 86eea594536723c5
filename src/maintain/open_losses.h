// SPDX-License-Identifier: Apache-2.0
// Names the files of open versions whose content is stored nowhere.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "catalog/series_catalog.h"
#include "crypto/key_ring.h"
#include "io/file_system.h"
#include "meta/lmdb.h"
#include "varve/check.h"
#include "varve/result.h"

namespace varve::maintain {

/// The repository of open versions. Lifetime: the references outlive the object.
struct OpenVersionsAt {
  io::FileSystem& files;
  const std::string& repository_path;
  const meta::Env& catalog;
  std::shared_ptr<const crypto::KeyRing> keys;  ///< Null in a plain repository.
};

/// Returns the files of an open version that refer to chunks unknown to the catalog, as
/// version::find_unstored_files() does.
using FindUnstoredFiles = std::function<Result<LostFiles>(const OpenVersionsAt& at,
                                                          const catalog::VersionRecord& version)>;

/// The lost content of an open version.
struct OpenLoss {
  catalog::VersionRecord version;
  std::string name;  ///< SERIES/VERSION.
  LostFiles files;
};
/// Returns the open versions with content that is stored nowhere. Leaves out versions without a
/// readable overlay: fault_of_open_version() reports these. `locked`: true if no writer can change
/// the overlays meanwhile.
/// Errors: the errors of the catalog and of a process without enough resources.
[[nodiscard]] Result<std::vector<OpenLoss>> find_open_losses(const OpenVersionsAt& at,
                                                             const FindUnstoredFiles& find,
                                                             bool locked);
/// Returns a text for the user.
[[nodiscard]] std::string describe_open_loss(const OpenLoss& loss);

}  // namespace varve::maintain
