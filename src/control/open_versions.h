// SPDX-License-Identifier: Apache-2.0
// Open versions with the sizes that they have now.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "control/client.h"
#include "varve/repository.h"
#include "varve/result.h"

namespace varve::control {

/// Looks up the open versions of series. The catalog knows their sizes from the last checkpoint,
/// which is some seconds old; a daemon that writes them knows better and is asked.
/// Not thread-safe.
class OpenVersions {
 public:
  /// Lifetime: `repository` must outlive this object.
  explicit OpenVersions(Repository& repository) : repository_(repository) {}

  /// Returns the open versions of the series. Where the daemon does not answer, their sizes are
  /// those of the catalog.
  [[nodiscard]] Result<std::vector<VersionInfo>> of(const SeriesInfo& series);

 private:
  Repository& repository_;
  bool connected_ = false;
  std::optional<Client> daemon_;
};

}  // namespace varve::control
