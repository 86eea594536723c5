// SPDX-License-Identifier: Apache-2.0
// The functions of a repository's series.
#include <algorithm>

#include "repo/repository_impl.h"
#include "series/lineage_usage.h"
#include "series/manifests.h"
#include "series/series.h"
#include "series/usage.h"
#include "series/version_records.h"
#include "varve/backup.h"
#include "varve/beside.h"
#include "varve/version_name.h"

namespace varve::repo {

namespace {

// Checks that no file beside the versions has the name of a new version, now or after the seal.
Result<void> check_no_file_called(SeriesVersions& repository, SeriesId series,
                                  std::string_view name) {
  VARVE_TRY_ASSIGN(const auto files, repository.beside(series));
  for (const auto wanted : {name, without_partial_suffix(name)}) {
    if (!files->lookup(kRootIno, wanted)) continue;
    return Error(ErrorCode::kExists, "a program's file beside the versions is called \"" +
                                         std::string(wanted) + "\"; choose another name");
  }
  return {};
}

}  // namespace

Result<void> RepositoryImpl::remove_series(std::string_view name) {
  VARVE_TRY_ASSIGN(const auto info, find_series(name));
  VARVE_TRY_ASSIGN(const auto beside_versions, beside(info.id));
  VARVE_TRY_ASSIGN(const auto files, beside_versions->list(kRootIno));
  if (!files.empty()) {
    return Error(ErrorCode::kNotEmpty,
                 "the series has the file " + files.front().first + "; remove it in a mount first");
  }
  VARVE_TRY_ASSIGN(auto* const found, series_.find(info.id));
  // The series may have the only labels with the highest sequence number: the labels of another
  // series take over the number (O43).
  VARVE_TRY_ASSIGN(const auto counted, sequence());
  VARVE_TRY_ASSIGN(const auto all, series());
  const auto left = std::ranges::find_if(
      all, [&](const SeriesInfo& other) { return counted && !read_only() && other.id != info.id; });
  series::Series* other = nullptr;
  if (left != all.end()) {
    VARVE_TRY_ASSIGN(other, series_.find(left->id));
    other->manifests().labels().rewrite();
  }
  VARVE_TRY(found->remove());
  if (other != nullptr) other->manifests().labels().rewrite();
  return {};
}

Result<std::vector<VersionInfo>> RepositoryImpl::versions(SeriesId series) {
  VARVE_TRY_ASSIGN(auto* const found, series_.find(series));
  return found->versions();
}

Result<std::vector<VersionInfo>> RepositoryImpl::open_versions(SeriesId series, OpenSizes sizes) {
  VARVE_TRY_ASSIGN(auto* const found, series_.find(series));
  return found->open_versions(sizes);
}

Result<std::uint64_t> RepositoryImpl::lost_chunks_stamp(SeriesId series) {
  VARVE_TRY_ASSIGN(auto* const found, series_.find(series));
  return found->lost_chunks_stamp();
}

Result<VersionInfo> RepositoryImpl::find_version(SeriesId series, std::string_view name) {
  VARVE_TRY_ASSIGN(auto* const found, series_.find(series));
  return found->find_version(name);
}

Result<std::optional<VersionInfo>> RepositoryImpl::version_to_end(SeriesId series,
                                                                  std::string_view name,
                                                                  VersionNumber source) {
  VARVE_TRY_ASSIGN(auto* const found, series_.find(series));
  VARVE_TRY(check_no_file_called(*this, series, name));
  return found->version_to_end(name, source);
}

Result<VersionInfo> RepositoryImpl::open_version(SeriesId series, std::string_view name,
                                                 const NewFile& root) {
  VARVE_TRY_ASSIGN(auto* const found, series_.find(series));
  VARVE_TRY(check_no_file_called(*this, series, name));
  quarantine_.keep_found();
  return found->open_version(name, root);
}

Result<std::shared_ptr<VersionWriter>> RepositoryImpl::writer(SeriesId series) {
  VARVE_TRY_ASSIGN(auto* const found, series_.find(series));
  return found->writer();
}

Result<std::shared_ptr<VersionReader>> RepositoryImpl::reader(SeriesId series,
                                                              VersionNumber number) {
  VARVE_TRY_ASSIGN(auto* const found, series_.find(series));
  return found->reader(number);
}

Result<SealOutcome> RepositoryImpl::seal(SeriesId series, VersionNumber number,
                                         std::string_view new_name, SealMode mode,
                                         SealWriters writers) {
  VARVE_TRY_ASSIGN(auto* const found, series_.find(series));
  VARVE_TRY(check_no_file_called(*this, series, new_name));
  quarantine_.keep_found();
  return found->seal(number, new_name, mode, writers);
}

Result<VersionInfo> RepositoryImpl::clone_version(SeriesId series, VersionNumber source,
                                                  std::string_view name) {
  VARVE_TRY_ASSIGN(auto* const found, series_.find(series));
  VARVE_TRY(check_no_file_called(*this, series, name));
  quarantine_.keep_found();
  return found->clone_version(source, name);
}

Result<void> RepositoryImpl::rename_version(SeriesId series, VersionNumber number,
                                            std::string_view new_name) {
  VARVE_TRY_ASSIGN(auto* const found, series_.find(series));
  VARVE_TRY(check_no_file_called(*this, series, new_name));
  return found->rename_version(number, new_name);
}

Result<void> RepositoryImpl::abandon_version(SeriesId series, VersionNumber number, bool force) {
  VARVE_TRY_ASSIGN(auto* const found, series_.find(series));
  return found->abandon_version(number, force);
}

Result<DeletionForecast> RepositoryImpl::forecast_deletion(
    SeriesId series, const std::vector<VersionNumber>& numbers, const DeletionOptions& options) {
  VARVE_TRY_ASSIGN(auto* const found, series_.find(series));
  return found->forecast_deletion(numbers, options);
}

Result<DeletionForecast> RepositoryImpl::delete_versions(SeriesId series,
                                                         const std::vector<VersionNumber>& numbers,
                                                         const DeletionOptions& options) {
  VARVE_TRY_ASSIGN(auto* const found, series_.find(series));
  return found->delete_versions(numbers, options);
}

Result<void> RepositoryImpl::check_deletion(SeriesId series, VersionNumber number) {
  VARVE_TRY_ASSIGN(auto* const found, series_.find(series));
  return found->check_deletion(number);
}

Result<void> RepositoryImpl::lock_version(SeriesId series, VersionNumber number, Timestamp until) {
  VARVE_TRY_ASSIGN(auto* const found, series_.find(series));
  return found->lock_version(number, until);
}

Result<std::vector<VersionUsage>> RepositoryImpl::version_usage(SeriesId series) {
  VARVE_TRY_ASSIGN(auto* const found, series_.find(series));
  return found->version_usage(std::nullopt);
}

Result<VersionUsage> RepositoryImpl::version_usage(SeriesId series, VersionNumber number) {
  VARVE_TRY_ASSIGN(auto* const found, series_.find(series));
  VARVE_TRY_ASSIGN(auto usage, found->version_usage(number));
  if (usage.empty()) return series::no_version();
  return std::move(usage.front());
}

Result<PoolUsage> RepositoryImpl::pool_usage(SeriesId series, VersionNumber number) {
  VARVE_TRY_ASSIGN(auto* const found, series_.find(series));
  return series::pool_usage(found->parts(), number);
}

Result<std::vector<VersionLock>> RepositoryImpl::version_locks(SeriesId series) {
  VARVE_TRY_ASSIGN(auto* const found, series_.find(series));
  return series::version_locks(found->parts());
}

Result<std::vector<CategoryInfo>> RepositoryImpl::categories(SeriesId series) {
  VARVE_TRY_ASSIGN(auto* const found, series_.find(series));
  return series::categories(found->parts());
}

Result<DeltaSavings> RepositoryImpl::delta_savings(SeriesId series) {
  VARVE_TRY_ASSIGN(auto* const found, series_.find(series));
  return series::delta_savings(found->parts());
}

Result<ArrangingDebt> RepositoryImpl::arranging_debt(SeriesId series) {
  VARVE_TRY_ASSIGN(auto* const found, series_.find(series));
  return series::arranging_debt(found->parts());
}

}  // namespace varve::repo
