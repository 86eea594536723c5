// SPDX-License-Identifier: Apache-2.0
// How commands delete, lock and arrange: by themselves, or by the daemon that has the
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
#include "varve/repository.h"
#include "varve/result.h"

namespace varve::cli {

/// What ends an arranging from another thread, wherever it is carried out.
class StopRequest {
 public:
  StopRequest();
  /// May be called from any thread, more than once.
  void stop();
  [[nodiscard]] bool stopped() const { return source_.stop_requested(); }
  [[nodiscard]] std::stop_token token() const { return source_.get_token(); }
  /// Readable once it was stopped.
  [[nodiscard]] int descriptor() const { return event_.get(); }

 private:
  std::stop_source source_;
  base::UniqueFd event_;
};

/// Not thread-safe.
class UpkeepAccess {
 public:
  enum class Purpose { kLook, kChange };
  /// kLocked if it is to be changed and another process holds it that takes no requests.
  [[nodiscard]] static Result<UpkeepAccess> open(const std::string& path, Purpose purpose);

  /// To look at. Where a daemon writes, it shows sealed versions only.
  [[nodiscard]] Repository& repository() { return *repository_; }
  /// A daemon makes the changes, and arranges after them by itself.
  [[nodiscard]] bool by_daemon() const { return daemon_.has_value(); }

  [[nodiscard]] Result<DeletionForecast> forecast(const SeriesInfo& series,
                                                  const std::vector<VersionNumber>& numbers,
                                                  const DeletionOptions& options);
  [[nodiscard]] Result<DeletionForecast> remove(const SeriesInfo& series,
                                                const std::vector<VersionNumber>& numbers,
                                                const DeletionOptions& options);
  /// Drops an open version. kBusy while files are open for writing.
  [[nodiscard]] Result<void> discard(const SeriesInfo& series, VersionNumber number);
  [[nodiscard]] Result<void> lock(const SeriesInfo& series, VersionNumber number, Timestamp until);
  [[nodiscard]] Result<void> set_arrange_settings(const ArrangeSettings& settings);
  /// kInterrupted, or a report that is not finished, if it was stopped.
  [[nodiscard]] Result<ArrangeReport> arrange(
      const SeriesInfo& series, std::uint64_t bytes_per_second, const StopRequest& stop,
      const std::function<void(const ArrangeProgress&)>& progress);

  /// Call it at the end, to learn of errors.
  [[nodiscard]] Result<void> close();

 private:
  std::unique_ptr<Repository> repository_;
  std::optional<control::Client> daemon_;
};

}  // namespace varve::cli
