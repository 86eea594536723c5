// SPDX-License-Identifier: Apache-2.0
// The public entry points.
#include "varve/repository.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/log.h"
#include "base/metrics.h"
#include "repo/repository_impl.h"
#include "series/series.h"
#include "series/version_records.h"
#include "varve/backup.h"
#include "varve/beside.h"
#include "varve/check.h"
#include "varve/version_name.h"

namespace varve {

namespace {

// Checks that no file beside the versions has the name of a new version, now or after the seal.
Result<void> check_no_file_called(Repository& repository, SeriesId series, std::string_view name) {
  VARVE_TRY_ASSIGN(const auto files, repository.beside(series));
  for (const auto wanted : {name, without_partial_suffix(name)}) {
    if (!files->lookup(kRootIno, wanted)) continue;
    return Error(ErrorCode::kExists, fmt::format("a program's file beside the versions is called "
                                                 "\"{}\"; choose another name",
                                                 wanted));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Repository>> Repository::open(const std::string& path,
                                                     const OpenOptions& options) {
  return repo::RepositoryImpl::open(path, options);
}

// Functions of a series: each placement implements the functions in its own way.

Result<void> Repository::remove_series(std::string_view name) {
  VARVE_TRY_ASSIGN(const auto info, find_series(name));
  VARVE_TRY_ASSIGN(const auto beside_versions, beside(info.id));
  VARVE_TRY_ASSIGN(const auto files, beside_versions->list(kRootIno));
  if (!files.empty()) {
    return Error(ErrorCode::kNotEmpty,
                 "the series has the file " + files.front().first + "; remove it in a mount first");
  }
  VARVE_TRY_ASSIGN(auto* const found, find(info.id));
  // The series may have the only labels with the highest sequence number: the labels of another
  // series take over the number (O43).
  VARVE_TRY_ASSIGN(const auto counted, sequence());
  VARVE_TRY_ASSIGN(const auto all, series());
  const auto left = std::ranges::find_if(
      all, [&](const SeriesInfo& other) { return counted && !read_only() && other.id != info.id; });
  series::Series* other = nullptr;
  if (left != all.end()) {
    VARVE_TRY_ASSIGN(other, find(left->id));
    other->write_labels();
  }
  VARVE_TRY(found->remove());
  if (other != nullptr) other->write_labels();
  return {};
}

Result<std::vector<VersionInfo>> Repository::versions(SeriesId series) {
  VARVE_TRY_ASSIGN(auto* const found, find(series));
  return found->versions();
}

Result<std::vector<VersionInfo>> Repository::open_versions(SeriesId series, OpenSizes sizes) {
  VARVE_TRY_ASSIGN(auto* const found, find(series));
  return found->open_versions(sizes);
}

Result<std::uint64_t> Repository::lost_chunks_stamp(SeriesId series) {
  VARVE_TRY_ASSIGN(auto* const found, find(series));
  return found->lost_chunks_stamp();
}

Result<VersionInfo> Repository::find_version(SeriesId series, std::string_view name) {
  VARVE_TRY_ASSIGN(auto* const found, find(series));
  return found->find_version(name);
}

Result<std::optional<VersionInfo>> Repository::version_to_end(SeriesId series,
                                                              std::string_view name,
                                                              VersionNumber source) {
  VARVE_TRY_ASSIGN(auto* const found, find(series));
  VARVE_TRY(check_no_file_called(*this, series, name));
  return found->version_to_end(name, source);
}

Result<VersionInfo> Repository::open_version(SeriesId series, std::string_view name,
                                             const NewFile& root) {
  VARVE_TRY_ASSIGN(auto* const found, find(series));
  VARVE_TRY(check_no_file_called(*this, series, name));
  return found->open_version(name, root);
}

Result<std::shared_ptr<VersionWriter>> Repository::writer(SeriesId series) {
  VARVE_TRY_ASSIGN(auto* const found, find(series));
  return found->writer();
}

Result<std::shared_ptr<VersionReader>> Repository::reader(SeriesId series, VersionNumber number) {
  VARVE_TRY_ASSIGN(auto* const found, find(series));
  return found->reader(number);
}

Result<SealOutcome> Repository::seal(SeriesId series, VersionNumber number,
                                     std::string_view new_name, SealMode mode,
                                     SealWriters writers) {
  VARVE_TRY_ASSIGN(auto* const found, find(series));
  VARVE_TRY(check_no_file_called(*this, series, new_name));
  return found->seal(number, new_name, mode, writers);
}

Result<VersionInfo> Repository::clone_version(SeriesId series, VersionNumber source,
                                              std::string_view name) {
  VARVE_TRY_ASSIGN(auto* const found, find(series));
  VARVE_TRY(check_no_file_called(*this, series, name));
  return found->clone_version(source, name);
}

Result<void> Repository::rename_version(SeriesId series, VersionNumber number,
                                        std::string_view new_name) {
  VARVE_TRY_ASSIGN(auto* const found, find(series));
  VARVE_TRY(check_no_file_called(*this, series, new_name));
  return found->rename_version(number, new_name);
}

Result<void> Repository::abandon_version(SeriesId series, VersionNumber number, bool force) {
  VARVE_TRY_ASSIGN(auto* const found, find(series));
  return found->abandon_version(number, force);
}

Result<DeletionForecast> Repository::forecast_deletion(SeriesId series,
                                                       const std::vector<VersionNumber>& numbers,
                                                       const DeletionOptions& options) {
  VARVE_TRY_ASSIGN(auto* const found, find(series));
  return found->forecast_deletion(numbers, options);
}

Result<DeletionForecast> Repository::delete_versions(SeriesId series,
                                                     const std::vector<VersionNumber>& numbers,
                                                     const DeletionOptions& options) {
  VARVE_TRY_ASSIGN(auto* const found, find(series));
  return found->delete_versions(numbers, options);
}

Result<void> Repository::check_deletion(SeriesId series, VersionNumber number) {
  VARVE_TRY_ASSIGN(auto* const found, find(series));
  return found->check_deletion(number);
}

Result<void> Repository::lock_version(SeriesId series, VersionNumber number, Timestamp until) {
  VARVE_TRY_ASSIGN(auto* const found, find(series));
  return found->lock_version(number, until);
}

Result<std::vector<VersionUsage>> Repository::version_usage(SeriesId series) {
  VARVE_TRY_ASSIGN(auto* const found, find(series));
  return found->version_usage(std::nullopt);
}

Result<VersionUsage> Repository::version_usage(SeriesId series, VersionNumber number) {
  VARVE_TRY_ASSIGN(auto* const found, find(series));
  VARVE_TRY_ASSIGN(auto usage, found->version_usage(number));
  if (usage.empty()) return series::no_version();
  return std::move(usage.front());
}

Result<PoolUsage> Repository::pool_usage(SeriesId series, VersionNumber number) {
  VARVE_TRY_ASSIGN(auto* const found, find(series));
  return found->pool_usage(number);
}

Result<std::vector<VersionLock>> Repository::version_locks(SeriesId series) {
  VARVE_TRY_ASSIGN(auto* const found, find(series));
  return found->version_locks();
}

Result<std::vector<CategoryInfo>> Repository::categories(SeriesId series) {
  VARVE_TRY_ASSIGN(auto* const found, find(series));
  return found->categories();
}

Result<ArrangingDebt> Repository::arranging_debt(SeriesId series) {
  VARVE_TRY_ASSIGN(auto* const found, find(series));
  return found->arranging_debt();
}

std::vector<MetricSample> Repository::metrics() { return metrics_registry().sample(); }

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
