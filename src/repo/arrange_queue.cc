// SPDX-License-Identifier: Apache-2.0
#include "repo/arrange_queue.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"
#include "base/thread_pool.h"
#include "series/series.h"
#include "series/series_parts.h"
#include "series/usage.h"
#include "series/version_records.h"

namespace varve::repo {

namespace {

using Steady = std::chrono::steady_clock;

// Limit of a seal's wait for arranging.
constexpr auto kSealWaitMax = std::chrono::seconds(30);
// Measuring takes at most about 1/kMeasureParts of the time of a wait.
constexpr int kMeasureParts = 4;
constexpr auto kMeasureEvery = std::chrono::milliseconds(100);
// A seal waits while the share of dead and departing chunks in the active set exceeds the share
// tolerated by the policy by more than kDebtPermille.
constexpr std::uint64_t kDebtPermille = 80;

constexpr auto kRetryAfter = std::chrono::seconds(60);  // On a full disk.
constexpr auto kCheckEvery = std::chrono::milliseconds(50);
constexpr int kNice = 10;
constexpr std::uint64_t kBackgroundBytesPerSecond = 64ULL << 20;

// I/O priorities of the kernel; no header of the C library defines names.
constexpr int kIoPriorityWhoProcess = 1;
constexpr int kIoPriorityIdle = 3 << 13;
constexpr int kIoPriorityLowest = 2 << 13 | 7;  // The lowest priority above idle.

// The following functions change the calling thread only, and do nothing if the kernel refuses.
void set_io_priority(int priority) {
  static_cast<void>(::syscall(SYS_ioprio_set, kIoPriorityWhoProcess, 0, priority));
}
void lower_priority() {
  set_io_priority(kIoPriorityIdle);
  static_cast<void>(::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice));
}

}  // namespace

void ArrangeQueue::start() {
  auto* const files = folder_.storage->evicted();
  if (files == nullptr) return;
  evicted_ =
      std::make_unique<EvictedArranging>(*files, [this](SeriesId id) { return is_far_behind(id); });
}

void ArrangeQueue::add_unarranged(const std::optional<std::set<SeriesId>>& unarranged) {
  const std::lock_guard lock(mutex_);
  any_unarranged_ = !unarranged;
  if (unarranged) unarranged_.insert(unarranged->begin(), unarranged->end());
}

void ArrangeQueue::expect_any() {
  const std::lock_guard lock(mutex_);
  any_unarranged_ = true;
}

Result<ArrangeReport> ArrangeQueue::arrange(SeriesId id, const ArrangeOptions& options) {
  VARVE_TRY(folder_.check_writable());
  VARVE_TRY_ASSIGN(auto* const series, series_.find(id));
  VARVE_TRY(series::VersionRecords(folder_.catalog, id).owner());
  {
    // arrange() takes over the next work of the background thread. The thread continues with the
    // remaining series.
    const std::lock_guard lock(mutex_);
    to_arrange_.erase(id);
  }
  ArrangeReport report;
  const auto covered = begin(id);
  auto finished = series->arrange(options, series::Pace::kAtOnce, report.done);
  if (finished && *finished) end(id, covered, End::kFinished);
  if (!finished) {
    if (finished.error().code() != ErrorCode::kNoSpace) return std::move(finished).error();
    base::log(base::LogLevel::kWarning, "arranging: " + finished.error().message());
    return report;
  }
  VARVE_TRY_ASSIGN(const bool is_protected, series->protect(options, report.done));
  report.finished = *finished && is_protected;
  if (report.finished && !has_waiting_work(id)) {
    const std::lock_guard lock(mutex_);
    unarranged_.erase(id);
  }
  return report;
}

void ArrangeQueue::arrange_soon(SeriesId series) {
  if (folder_.options.read_only) return;
  const std::lock_guard lock(mutex_);
  unarranged_.insert(series);
  ++backlogs_[series].requests;
  if (!folder_.options.arrange) return;
  to_arrange_.insert(series);
  if (thread_.joinable()) {
    wake_.notify_all();
    return;
  }
  thread_ = std::jthread([this](const std::stop_token& stop) {
    base::name_this_thread("varve-arrange");
    lower_priority();
    ArrangeOptions options;
    options.stop = stop;
    options.progress = [this, idle = true](const ArrangeProgress&) mutable {
      const std::lock_guard guard(mutex_);
      if (idle != (seals_waiting_ != 0)) return;
      idle = !idle;
      set_io_priority(idle ? kIoPriorityIdle : kIoPriorityLowest);
    };
    arrange_in_background(options);
  });
}

void ArrangeQueue::resume() {
  if (!folder_.options.arrange || folder_.options.read_only) return;
  std::set<SeriesId> owing;
  {
    const std::lock_guard lock(mutex_);
    owing.swap(unarranged_);
  }
  if (!any_unarranged_ && owing.empty()) return;
  const auto all = series_.list();
  if (!all) {
    base::log(base::LogLevel::kWarning, "arranging: " + all.error().message());
    any_unarranged_ = true;
    return;
  }
  for (const auto& one : *all) {
    if (!any_unarranged_ && !owing.contains(one.id)) continue;
    folder_.replication().changed();  // The earlier process may also have skipped a replication.
    arrange_soon(one.id);
  }
  const std::lock_guard lock(mutex_);
  any_unarranged_ = false;  // From here on, the set has all unarranged series.
}

std::optional<SeriesId> ArrangeQueue::next(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  const bool wanted = wake_.wait(lock, stop, [this] { return !to_arrange_.empty(); });
  if (!wanted || stop.stop_requested()) return std::nullopt;
  auto next = std::find_if(to_arrange_.begin(), to_arrange_.end(),
                           [this](SeriesId id) { return backlogs_[id].waiting != 0; });
  if (next == to_arrange_.end()) next = to_arrange_.begin();
  const SeriesId series = *next;
  to_arrange_.erase(next);
  return series;
}

Result<bool> ArrangeQueue::arrange_next(SeriesId id, const ArrangeOptions& options, bool& told) {
  ArrangeProgress done;
  const auto covered = begin(id);
  const auto one = series_.find(id);
  auto finished = Result<bool>(false);
  if (one) {
    finished = (*one)->arrange(options, series::Pace::kBackground, done);
  } else {
    finished = one.error();
  }
  const bool full = !finished && finished.error().code() == ErrorCode::kNoSpace;
  if (!finished && !(full && told)) {
    base::log(base::LogLevel::kWarning, "arranging stopped: " + finished.error().message());
  }
  told = full;
  end(id, covered, !finished ? End::kFailed : *finished ? End::kFinished : End::kStopped);
  if (finished && *finished) {
    const auto kept = (*one)->protect(options, done);
    if (!kept) base::log(base::LogLevel::kWarning, "parity: " + kept.error().message());
    const bool leaves = has_waiting_work(id);
    const std::lock_guard lock(mutex_);
    if (kept && *kept && !leaves && !to_arrange_.contains(id)) unarranged_.erase(id);
  }
  folder_.replication().changed();
  return finished;
}

std::uint64_t ArrangeQueue::background_rate() const {
  if (folder_.options.arrange_bytes_per_second) return *folder_.options.arrange_bytes_per_second;
  const auto settings = settings_.upkeep_settings();
  const auto stored = settings ? settings->arrange_bytes_per_second : std::nullopt;
  return stored.value_or(kBackgroundBytesPerSecond);
}

void ArrangeQueue::arrange_in_background(ArrangeOptions options) {
  bool told = false;
  while (const auto series = next(options.stop)) {
    options.bytes_per_second = background_rate();
    const auto finished = arrange_next(*series, options, told);
    if (finished && *finished) continue;
    const bool full = !finished && finished.error().code() == ErrorCode::kNoSpace;
    if (!finished && !full) continue;  // The next seal tries again.
    std::unique_lock lock(mutex_);
    // Made way for a deletion or for another series, or out of space.
    wake_.wait_for(lock, options.stop, full ? std::chrono::milliseconds(kRetryAfter) : kCheckEvery,
                   [this, full] { return full && !to_arrange_.empty(); });
    to_arrange_.insert(*series);
  }
}

std::optional<std::set<SeriesId>> ArrangeQueue::unarranged() {
  const std::lock_guard lock(mutex_);
  if (any_unarranged_) return std::nullopt;
  return unarranged_;
}

void ArrangeQueue::stop() {
  std::jthread ended;
  {
    const std::lock_guard lock(mutex_);
    to_arrange_.clear();
    stops_ = true;
    ended = std::move(thread_);
  }
  ended_.notify_all();
  if (ended.joinable()) {
    ended.request_stop();
    ended.join();
  }
}

std::uint64_t ArrangeQueue::begin(SeriesId series) {
  const std::lock_guard lock(mutex_);
  return backlogs_[series].requests;
}

void ArrangeQueue::end(SeriesId series, std::uint64_t covered, End end) {
  {
    const std::lock_guard lock(mutex_);
    auto& backlog = backlogs_[series];
    if (end == End::kFinished) backlog.covered = std::max(backlog.covered, covered);
    if (end != End::kStopped) backlog.failed = end == End::kFailed;
  }
  ended_.notify_all();
}

series::ArrangeUrgency ArrangeQueue::urgency(SeriesId series) {
  const std::lock_guard lock(mutex_);
  const auto& backlog = backlogs_[series];
  return {backlog.requests - backlog.covered, backlog.waiting != 0,
          backlog.waiting == 0 && seals_waiting_ != 0};
}

bool ArrangeQueue::is_far_behind(SeriesId id) {
  const auto series = series_.find(id);
  const auto settings = settings_.arrange_settings();
  if (!series || !settings) return false;
  const auto debt = series::arranging_debt((*series)->parts());
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
void ArrangeQueue::before_seal(SeriesId series) {
  folder_.replication().before_seal();
  if (!folder_.options.arrange || folder_.options.read_only) return;
  std::uint64_t wanted = 0;
  {
    const std::lock_guard lock(mutex_);
    auto& backlog = backlogs_[series];
    wanted = backlog.requests;
    if (backlog.covered == wanted || backlog.waited_for == wanted || backlog.failed) return;
    backlog.waited_for = wanted;
  }
  const auto began = Steady::now();
  if (!is_far_behind(series)) return;
  auto measured = Steady::now();
  auto pause = std::max<Steady::duration>(kMeasureEvery, (measured - began) * kMeasureParts);
  std::unique_lock lock(mutex_);
  auto& backlog = backlogs_[series];
  ++backlog.waiting;
  ++seals_waiting_;
  const auto is_over = [&] { return backlog.covered >= wanted || backlog.failed || stops_; };
  bool late = false;
  while (!ended_.wait_until(lock, std::min(measured + pause, began + kSealWaitMax), is_over)) {
    late = Steady::now() >= began + kSealWaitMax;
    if (late) break;
    lock.unlock();
    const auto start = Steady::now();
    const bool behind = is_far_behind(series);
    measured = Steady::now();
    pause = std::max<Steady::duration>(kMeasureEvery, (measured - start) * kMeasureParts);
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
