// SPDX-License-Identifier: Apache-2.0
// Arranging: in the background after seals and deletions, and by request.
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"
#include "base/thread_pool.h"
#include "catalog/layout_records.h"
#include "repo/repository_impl.h"
#include "series/series_parts.h"
#include "series/version_records.h"

namespace varve::repo {

namespace {

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

Result<ArrangeSettings> RepositoryImpl::arrange_settings() {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(folder_.catalog));
  return catalog::find_arrange_settings(txn);
}

Result<void> RepositoryImpl::set_arrange_settings(const ArrangeSettings& settings) {
  VARVE_TRY(folder_.check_writable());
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(folder_.catalog));
  VARVE_TRY(catalog::put_arrange_settings(txn, settings));
  VARVE_TRY(txn.commit());
  {
    const std::lock_guard lock(arrange_mutex_);
    any_unarranged_ = true;  // New settings may mean new work.
  }
  series_.write_all_labels();
  folder_.replicate_soon();
  return {};
}

Result<ArrangeReport> RepositoryImpl::arrange(SeriesId id, const ArrangeOptions& options) {
  VARVE_TRY(folder_.check_writable());
  VARVE_TRY_ASSIGN(auto* const series, series_.find(id));
  VARVE_TRY(series::VersionRecords(folder_.catalog, id).owner());
  {
    // arrange() takes over the next work of the background thread. The thread continues with the
    // remaining series.
    const std::lock_guard lock(arrange_mutex_);
    to_arrange_.erase(id);
  }
  ArrangeReport report;
  const auto covered = begin_arranging(id);
  auto finished = series->arrange(options, series::Pace::kAtOnce, report.done);
  if (finished && *finished) end_arranging(id, covered, ArrangingEnd::kFinished);
  if (!finished) {
    if (finished.error().code() != ErrorCode::kNoSpace) return std::move(finished).error();
    base::log(base::LogLevel::kWarning, "arranging: " + finished.error().message());
    return report;
  }
  VARVE_TRY_ASSIGN(const bool is_protected, series->protect(options, report.done));
  report.finished = *finished && is_protected;
  if (report.finished && !leaves_work(id)) {
    const std::lock_guard lock(arrange_mutex_);
    unarranged_.erase(id);
  }
  return report;
}

void RepositoryImpl::arrange_soon(SeriesId series) {
  if (folder_.options.read_only) return;
  folder_.replicate_soon();  // A version was sealed or deleted.
  const std::lock_guard lock(arrange_mutex_);
  unarranged_.insert(series);
  ++backlogs_[series].requests;
  if (!folder_.options.arrange) return;
  to_arrange_.insert(series);
  if (arranger_.joinable()) {
    arrange_wake_.notify_all();
    return;
  }
  arranger_ = std::jthread([this](const std::stop_token& stop) {
    base::name_this_thread("varve-arrange");
    lower_priority();
    ArrangeOptions options;
    options.stop = stop;
    options.progress = [this, idle = true](const ArrangeProgress&) mutable {
      const std::lock_guard guard(arrange_mutex_);
      if (idle != (seals_waiting_ != 0)) return;
      idle = !idle;
      set_io_priority(idle ? kIoPriorityIdle : kIoPriorityLowest);
    };
    arrange_in_background(options);
  });
}

void RepositoryImpl::arrange_what_is_owed() {
  if (!folder_.options.arrange || folder_.options.read_only) return;
  std::set<SeriesId> owing;
  {
    const std::lock_guard lock(arrange_mutex_);
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
    if (any_unarranged_ || owing.contains(one.id)) arrange_soon(one.id);
  }
  const std::lock_guard lock(arrange_mutex_);
  any_unarranged_ = false;  // From here on, the set has all unarranged series.
}

std::optional<SeriesId> RepositoryImpl::next_to_arrange(const std::stop_token& stop) {
  std::unique_lock lock(arrange_mutex_);
  const bool wanted = arrange_wake_.wait(lock, stop, [this] { return !to_arrange_.empty(); });
  if (!wanted || stop.stop_requested()) return std::nullopt;
  auto next = std::find_if(to_arrange_.begin(), to_arrange_.end(),
                           [this](SeriesId id) { return backlogs_[id].waiting != 0; });
  if (next == to_arrange_.end()) next = to_arrange_.begin();
  const SeriesId series = *next;
  to_arrange_.erase(next);
  return series;
}

Result<bool> RepositoryImpl::arrange_next(SeriesId id, const ArrangeOptions& options, bool& told) {
  ArrangeProgress done;
  const auto covered = begin_arranging(id);
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
  end_arranging(id, covered,
                !finished   ? ArrangingEnd::kFailed
                : *finished ? ArrangingEnd::kFinished
                            : ArrangingEnd::kStopped);
  if (finished && *finished) {
    const auto kept = (*one)->protect(options, done);
    if (!kept) base::log(base::LogLevel::kWarning, "parity: " + kept.error().message());
    const bool leaves = leaves_work(id);
    const std::lock_guard lock(arrange_mutex_);
    if (kept && *kept && !leaves && !to_arrange_.contains(id)) unarranged_.erase(id);
  }
  folder_.replicate_soon();
  return finished;
}

std::uint64_t RepositoryImpl::background_rate() {
  if (folder_.options.arrange_bytes_per_second) return *folder_.options.arrange_bytes_per_second;
  const auto settings = upkeep_settings();
  const auto stored = settings ? settings->arrange_bytes_per_second : std::nullopt;
  return stored.value_or(kBackgroundBytesPerSecond);
}

void RepositoryImpl::arrange_in_background(ArrangeOptions options) {
  bool told = false;
  while (const auto series = next_to_arrange(options.stop)) {
    options.bytes_per_second = background_rate();
    const auto finished = arrange_next(*series, options, told);
    if (finished && *finished) continue;
    const bool full = !finished && finished.error().code() == ErrorCode::kNoSpace;
    if (!finished && !full) continue;  // The next seal tries again.
    std::unique_lock lock(arrange_mutex_);
    // Made way for a deletion or for another series, or out of space.
    arrange_wake_.wait_for(lock, options.stop,
                           full ? std::chrono::milliseconds(kRetryAfter) : kCheckEvery,
                           [this, full] { return full && !to_arrange_.empty(); });
    to_arrange_.insert(*series);
  }
}

std::optional<std::set<SeriesId>> RepositoryImpl::unarranged() {
  const std::lock_guard lock(arrange_mutex_);
  if (any_unarranged_) return std::nullopt;
  return unarranged_;
}

void RepositoryImpl::stop_arranging() {
  std::jthread ended;
  {
    const std::lock_guard lock(arrange_mutex_);
    to_arrange_.clear();
    stops_arranging_ = true;
    ended = std::move(arranger_);
  }
  arranging_ended_.notify_all();
  if (ended.joinable()) {
    ended.request_stop();
    ended.join();
  }
}

}  // namespace varve::repo
