// SPDX-License-Identifier: Apache-2.0
#include "store/repository_paths.h"

#include <fmt/core.h>

#include <cstdint>

#include "store/repository_names.h"

namespace varve::store {

std::string RepositoryPaths::series(SeriesId series) const {
  return fmt::format("{}/{:08x}", all_series(), static_cast<std::uint32_t>(series));
}

std::string RepositoryPaths::staging(SeriesId series, VersionNumber number) const {
  return all_staging() + "/" + staging_name(series, number);
}

}  // namespace varve::store
