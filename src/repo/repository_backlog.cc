// SPDX-License-Identifier: Apache-2.0
// Slows seals down while arranging is far behind, so that the backlog of arranging stays bounded
// under continuous backups.
#include <algorithm>
#include <chrono>

#include "base/log.h"
#include "repo/repository_impl.h"

namespace varve::repo {

namespace {

using Clock = std::chrono::steady_clock;

// Limit of a seal's wait for arranging.
constexpr auto kSealWaitMax = std::chrono::seconds(30);
// Measuring takes at most about 1/kMeasureParts of the time of a wait.
constexpr int kMeasureParts = 4;
constexpr auto kMeasureEvery = std::chrono::milliseconds(100);
// A seal waits while the share of dead and departing chunks in the active set exceeds the share
// tolerated by the policy by more than kDebtPermille.
constexpr std::uint64_t kDebtPermille = 80;

}  // namespace

std::uint64_t RepositoryImpl::begin_arranging(SeriesId series) {
  const std::lock_guard lock(arrange_mutex_);
  return backlogs_[series].requests;
}

void RepositoryImpl::end_arranging(SeriesId series, std::uint64_t covered, ArrangingEnd end) {
  {
    const std::lock_guard lock(arrange_mutex_);
    auto& backlog = backlogs_[series];
    if (end == ArrangingEnd::kFinished) backlog.covered = std::max(backlog.covered, covered);
    if (end != ArrangingEnd::kStopped) backlog.failed = end == ArrangingEnd::kFailed;
  }
  arranging_ended_.notify_all();
}

series::ArrangeUrgency RepositoryImpl::arrange_urgency(SeriesId series) {
  const std::lock_guard lock(arrange_mutex_);
  const auto& backlog = backlogs_[series];
  return {backlog.requests - backlog.covered, backlog.waiting != 0,
          backlog.waiting == 0 && seals_waiting_ != 0};
}

bool RepositoryImpl::is_far_behind(SeriesId id) {
  const auto series = series_.find(id);
  const auto settings = arrange_settings();
  if (!series || !settings) return false;
  const auto debt = (*series)->arranging_debt();
  if (!debt) {
    base::log(base::LogLevel::kWarning,
              "cannot tell how far arranging is behind: " + debt.error().message());
    return false;
  }
  const std::uint64_t fan = settings->fan;
  if (debt->runs > 2 * fan + fan / 2) return true;
  return (debt->dead_bytes + debt->departing_bytes) * 1000 >
         debt->active_bytes * (settings->dead_permille + kDebtPermille);
}

// Waits only if the arranging after an earlier seal is not finished yet, and once for each earlier
// seal. If arranging fails, for example on a full disk or on damage, the seal goes on.
void RepositoryImpl::before_seal(SeriesId series) {
  if (folder_.bucket && folder_.bucket->bound() != nullptr) folder_.bucket->bound()->before_seal();
  if (!folder_.options.arrange || folder_.options.read_only) return;
  std::uint64_t wanted = 0;
  {
    const std::lock_guard lock(arrange_mutex_);
    auto& backlog = backlogs_[series];
    wanted = backlog.requests;
    if (backlog.covered == wanted || backlog.waited_for == wanted || backlog.failed) return;
    backlog.waited_for = wanted;
  }
  const auto began = Clock::now();
  if (!is_far_behind(series)) return;
  auto measured = Clock::now();
  auto pause = std::max<Clock::duration>(kMeasureEvery, (measured - began) * kMeasureParts);
  std::unique_lock lock(arrange_mutex_);
  auto& backlog = backlogs_[series];
  ++backlog.waiting;
  ++seals_waiting_;
  const auto is_over = [&] {
    return backlog.covered >= wanted || backlog.failed || stops_arranging_;
  };
  bool late = false;
  while (!arranging_ended_.wait_until(lock, std::min(measured + pause, began + kSealWaitMax),
                                      is_over)) {
    late = Clock::now() >= began + kSealWaitMax;
    if (late) break;
    lock.unlock();
    const auto start = Clock::now();
    const bool behind = is_far_behind(series);
    measured = Clock::now();
    pause = std::max<Clock::duration>(kMeasureEvery, (measured - start) * kMeasureParts);
    lock.lock();
    if (!behind) break;
  }
  --backlog.waiting;
  --seals_waiting_;
  if (!late) return;
  lock.unlock();
  base::log(base::LogLevel::kWarning,
            "arranging is far behind; a seal has waited 30 s for it and goes on");
}

}  // namespace varve::repo
