// SPDX-License-Identifier: Apache-2.0
// Lets commands delete, lock and arrange: by themselves, or through the daemon that has the
// repository mounted.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "control/client.h"
#include "varve/arrange.h"
#include "varve/repository.h"
#include "varve/result.h"
#include "varve/retention.h"

namespace varve::cli {

/// A request from another thread to stop arranging, here or in a daemon.
class StopRequest {
 public:
  StopRequest();
  /// Requests the stop. Thread-safe; may be called more than once.
  void stop();
  [[nodiscard]] bool stopped() const { return source_.stop_requested(); }
  [[nodiscard]] std::stop_token token() const { return source_.get_token(); }
  /// Returns a descriptor that is readable after stop().
  [[nodiscard]] int descriptor() const { return event_.get(); }

 private:
  std::stop_source source_;
  base::UniqueFd event_;
};

/// A repository to maintain, directly or through its daemon. Not thread-safe.
class UpkeepAccess {
 public:
  enum class Purpose { kLook, kChange };
  /// Opens the repository.
  /// Errors: kLocked with kChange if the process that writes takes no requests.
  [[nodiscard]] static Result<UpkeepAccess> open(const std::string& path, Purpose purpose);

  /// Returns the repository for reading. If a daemon writes, it shows only sealed versions.
  [[nodiscard]] Repository& repository() { return *repository_; }
  /// Returns true if a daemon makes the changes. It then arranges after them by itself.
  [[nodiscard]] bool by_daemon() const { return daemon_.has_value(); }

  [[nodiscard]] Result<DeletionForecast> forecast(const SeriesInfo& series,
                                                  const std::vector<VersionNumber>& numbers,
                                                  const DeletionOptions& options);
  [[nodiscard]] Result<DeletionForecast> remove(const SeriesInfo& series,
                                                const std::vector<VersionNumber>& numbers,
                                                const DeletionOptions& options);
  /// Drops an open version.
  /// Errors: kBusy while files are open for writing.
  [[nodiscard]] Result<void> discard(const SeriesInfo& series, VersionNumber number);
  [[nodiscard]] Result<void> lock(const SeriesInfo& series, VersionNumber number, Timestamp until);
  [[nodiscard]] Result<void> set_arrange_settings(const ArrangeSettings& settings);
  /// Arranges a series. After a stop, returns kInterrupted or an unfinished report.
  [[nodiscard]] Result<ArrangeReport> arrange(
      const SeriesInfo& series, std::uint64_t bytes_per_second, const StopRequest& stop,
      const std::function<void(const ArrangeProgress&)>& progress);

  /// Closes the repository. Call it at the end to learn of errors.
  [[nodiscard]] Result<void> close();

 private:
  std::unique_ptr<Repository> repository_;
  std::optional<control::Client> daemon_;
};

}  // namespace varve::cli
