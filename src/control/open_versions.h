// SPDX-License-Identifier: Apache-2.0
// Lists open versions with their present sizes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "control/client.h"
#include "varve/repository.h"
#include "varve/result.h"

namespace varve::control {

/// Lists the open versions of series. The catalog has the sizes of the last checkpoint, some
/// seconds ago. A daemon that writes to the versions reports the present sizes. Not thread-safe.
class OpenVersions {
 public:
  /// Lifetime: `repository` must outlive the OpenVersions.
  explicit OpenVersions(Repository& repository) : repository_(repository) {}

  /// Returns the open versions of the series. Without a daemon, the sizes are the catalog's.
  [[nodiscard]] Result<std::vector<VersionInfo>> of(const SeriesInfo& series);

 private:
  Repository& repository_;
  bool connected_ = false;
  std::optional<Client> daemon_;
};

}  // namespace varve::control
