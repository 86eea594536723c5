// SPDX-License-Identifier: Apache-2.0
#include "cli/upkeep_access.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

#include "cli/repository_access.h"

namespace varve::cli {

StopRequest::StopRequest() : event_(::eventfd(0, EFD_CLOEXEC)) {}

void StopRequest::stop() {
  source_.request_stop();
  const std::uint64_t one = 1;
  // The first write to an eventfd cannot fail.
  (void)!::write(event_.get(), &one, sizeof one);
}

// A process can open the catalog only once. A command that writes therefore also reads through its
// writing repository, unless a daemon does the writing.
Result<UpkeepAccess> UpkeepAccess::open(const std::string& path, Purpose purpose) {
  UpkeepAccess access;
  if (purpose == Purpose::kLook) {
    VARVE_TRY_ASSIGN(access.repository_, open_to_read(path));
    auto daemon = control::Client::connect(path);
    if (daemon) access.daemon_.emplace(std::move(*daemon));
    return access;
  }
  VARVE_TRY_ASSIGN(WriteAccess write, open_or_reach(path));
  access.repository_ = std::move(write.repository);
  access.daemon_ = std::move(write.daemon);
  if (!access.repository_) {
    VARVE_TRY_ASSIGN(access.repository_, open_to_read(path));
  }
  return access;
}

Result<DeletionForecast> UpkeepAccess::forecast(const SeriesInfo& series,
                                                const std::vector<VersionNumber>& numbers,
                                                const DeletionOptions& options) {
  if (!daemon_) return repository_->forecast_deletion(series.id, numbers, options);
  return daemon_->remove({.series = series.name,
                          .versions = numbers,
                          .forecast_only = true,
                          .discard = false,
                          .options = options});
}

Result<DeletionForecast> UpkeepAccess::remove(const SeriesInfo& series,
                                              const std::vector<VersionNumber>& numbers,
                                              const DeletionOptions& options) {
  if (!daemon_) return repository_->delete_versions(series.id, numbers, options);
  return daemon_->remove({.series = series.name,
                          .versions = numbers,
                          .forecast_only = false,
                          .discard = false,
                          .options = options});
}

Result<void> UpkeepAccess::discard(const SeriesInfo& series, VersionNumber number) {
  if (!daemon_) return repository_->abandon_version(series.id, number, true);
  control::DeleteRequest request;
  request.series = series.name;
  request.versions = {number};
  request.discard = true;
  VARVE_TRY(daemon_->remove(request));
  return {};
}

Result<void> UpkeepAccess::lock(const SeriesInfo& series, VersionNumber number, Timestamp until) {
  if (!daemon_) return repository_->lock_version(series.id, number, until);
  return daemon_->lock({.series = series.name, .version = number, .until = until});
}

Result<void> UpkeepAccess::set_arrange_settings(const ArrangeSettings& settings) {
  if (!daemon_) return repository_->set_arrange_settings(settings);
  VARVE_TRY(daemon_->arrange_settings(settings));
  return {};
}

Result<ArrangeReport> UpkeepAccess::arrange(
    const SeriesInfo& series, std::uint64_t bytes_per_second, const StopRequest& stop,
    const std::function<void(const ArrangeProgress&)>& progress) {
  if (!daemon_) {
    return repository_->arrange(
        series.id,
        {.bytes_per_second = bytes_per_second, .stop = stop.token(), .progress = progress});
  }
  return daemon_->arrange({.series = series.name, .bytes_per_second = bytes_per_second},
                          stop.descriptor(), progress);
}

Result<void> UpkeepAccess::close() { return repository_->close(); }

}  // namespace varve::cli
