// SPDX-License-Identifier: Apache-2.0
// The public entry points.
#include "varve/repository.h"

#include "base/log.h"
#include "repo/repository_impl.h"
#include "varve/backup.h"

namespace varve {

Result<std::unique_ptr<Repository>> Repository::open(const std::string& path,
                                                     const OpenOptions& options) {
  return repo::RepositoryImpl::open(path, options);
}

Result<VersionInfo> open_in_series(
    Repository& repository, std::string_view name,
    const std::function<Result<VersionInfo>(const SeriesInfo&)>& open) {
  auto series = repository.find_series(name);
  const bool missing = !series && series.error().code() == ErrorCode::kNotFound;
  if (missing) series = repository.create_series(name);
  const bool created = missing && series;
  // Another caller created the series after the search.
  const bool taken = missing && !series && series.error().code() == ErrorCode::kExists;
  if (taken) series = repository.find_series(name);
  if (!series) return std::move(series).error();
  auto opened = open(*series);
  if (!opened && created) {
    // kNotEmpty: the version exists despite the error, or another caller opened a version.
    const auto removed = repository.remove_series(name);
    if (!removed && removed.error().code() != ErrorCode::kNotEmpty) {
      base::log(base::LogLevel::kWarning, removed.error().message());
    }
  }
  return opened;
}

}  // namespace varve
