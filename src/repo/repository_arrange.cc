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
#include "layout/arranger.h"
#include "maintain/settled_files.h"
#include "parity/upkeep.h"
#include "repo/repository_impl.h"

namespace varve::repo {

namespace {

constexpr auto kRetryAfter = std::chrono::seconds(60);  // On a full disk.
constexpr auto kCheckEvery = std::chrono::milliseconds(50);
constexpr int kNice = 10;
constexpr int kParityRoundsMax = 4;

// The kernel's names for these are in no header of the C library.
constexpr int kIoPriorityWhoProcess = 1;
constexpr int kIoPriorityIdle = 3 << 13;

// Of the calling thread only. Without effect where the kernel refuses.
void lower_priority() {
  static_cast<void>(::syscall(SYS_ioprio_set, kIoPriorityWhoProcess, 0, kIoPriorityIdle));
  static_cast<void>(::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice));
}

// Waits so that on average no more than so many bytes a second pass.
class Throttle {
 public:
  /// `stored_bytes`: what give_way() is told later, as it is now.
  Throttle(std::uint64_t bytes_per_second, std::uint64_t stored_bytes, std::function<bool()> stop)
      : rate_(bytes_per_second), stop_(std::move(stop)), stored_bytes_(stored_bytes) {}

  void pass(std::uint64_t bytes) {
    if (rate_ == 0) return;
    passed_ += bytes;
    wait_until(begin_ + std::chrono::microseconds(passed_ * 1000 / rate_ * 1000));
  }

  /// Waits as long as the last step took, if chunks have been stored meanwhile: half of the time
  /// is theirs, whatever it is that both need.
  void give_way(std::uint64_t stored_bytes) {
    const auto now = Clock::now();
    if (stored_bytes != stored_bytes_) wait_until(now + (now - step_began_));
    stored_bytes_ = stored_bytes;
    step_began_ = Clock::now();
  }

 private:
  using Clock = std::chrono::steady_clock;
  void wait_until(Clock::time_point due) const {
    while (Clock::now() < due && !stop_()) {
      std::this_thread::sleep_for(std::min<Clock::duration>(due - Clock::now(), kCheckEvery));
    }
  }

  const std::uint64_t rate_;
  const std::function<bool()> stop_;
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point step_began_ = begin_;
  std::uint64_t passed_ = 0;
  std::uint64_t stored_bytes_;
};

}  // namespace

Result<ArrangeSettings> RepositoryImpl::arrange_settings() {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  return catalog::find_arrange_settings(txn);
}

Result<void> RepositoryImpl::set_arrange_settings(const ArrangeSettings& settings) {
  VARVE_TRY(check_writable());
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog_));
  VARVE_TRY(catalog::put_arrange_settings(txn, settings));
  VARVE_TRY(txn.commit());
  sync_all_labels();
  return {};
}

Result<ArrangeReport> RepositoryImpl::arrange(SeriesId series, const ArrangeOptions& options) {
  VARVE_TRY(check_writable());
  VARVE_TRY(series_record(series));
  {
    // What the background would do next is done here; it looks at what is left afterwards.
    const std::lock_guard lock(arrange_mutex_);
    to_arrange_.erase(series);
  }
  ArrangeReport report;
  auto finished = arrange_series(series, options, Pace::kAtOnce, report.done);
  if (!finished) {
    if (finished.error().code() != ErrorCode::kNoSpace) return std::move(finished).error();
    base::log(base::LogLevel::kWarning, "arranging: " + finished.error().message());
    return report;
  }
  VARVE_TRY_ASSIGN(const bool is_protected, protect_series(series, options, report.done));
  report.finished = *finished && is_protected;
  return report;
}

Result<bool> RepositoryImpl::arrange_series(SeriesId series, const ArrangeOptions& options,
                                            Pace pace, ArrangeProgress& done) {
  VARVE_TRY_ASSIGN(auto* memory, state(series));
  const auto stop = [&] { return options.stop.stop_requested() || memory->layout->make_way(); };
  ArrangeSettings settings;
  std::optional<catalog::VersionRecord> newest;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    VARVE_TRY_ASSIGN(settings, catalog::find_arrange_settings(txn));
    VARVE_TRY_ASSIGN(const auto records, catalog::list_versions(txn, series));
    bool is_main = false;
    for (const auto& record : records) {
      if (record.state != VersionState::kSealed) continue;
      VARVE_TRY_ASSIGN(const auto retention, catalog::find_retention(txn, series, record.number));
      if (is_main && retention.side) continue;
      is_main = !retention.side;
      newest = record;
    }
  }
  if (!newest) return true;
  Throttle throttle(options.bytes_per_second, memory->layout->placed().raw, stop);
  layout::ArrangerParts parts;
  parts.layout = memory->layout.get();
  parts.newest = layout::walk_tree(*memory->objects, newest->root);
  parts.stop = stop;
  parts.after_step = [&](const layout::MoveOutcome& step) {
    done.bytes_written += step.bytes_written;
    done.bytes_read += step.bytes_read;
    ++done.steps;
    if (options.progress) options.progress(done);
    throttle.pass(step.bytes_written + step.bytes_read);
    if (pace == Pace::kBackground) throttle.give_way(memory->layout->placed().raw);
  };
  layout::Arranger arranger(parts, settings);
  auto finished = arranger.run();
  if (done.steps != 0) sync_labels(series);  // So that an older catalog is known as such.
  return finished;
}

Result<bool> RepositoryImpl::protect_series(SeriesId series, const ArrangeOptions& options,
                                            ArrangeProgress& done) {
  VARVE_TRY_ASSIGN(auto* memory, state(series));
  const std::lock_guard alone(memory->parity_mutex);
  const auto scan = [&]() -> Result<std::vector<parity::DataFile>> {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    return maintain::settled_files(txn, series);
  };
  Throttle throttle(options.bytes_per_second, 0, [&] { return options.stop.stop_requested(); });
  parity::KeepOptions how;
  VARVE_TRY_ASSIGN(const auto settings, arrange_settings());
  how.percent = settings.parity_percent;
  how.pass = [&](std::uint64_t bytes) {
    throttle.pass(bytes);
    if (options.progress) options.progress(done);
    return !options.stop.stop_requested();
  };
  const auto directory = series_directory(series);
  for (int round = 1;; ++round) {
    VARVE_TRY_ASSIGN(const auto present, scan());
    const auto kept = parity::keep_parity(*files_, directory, series, present, how);
    if (!kept) {
      base::log(base::LogLevel::kWarning, "parity: " + kept.error().message());
      return true;
    }
    done.bytes_read += kept->bytes_read;
    done.bytes_written += kept->bytes_written;
    if (!kept->finished) return false;
    // Files that were cut or removed meanwhile look damaged.
    VARVE_TRY_ASSIGN(const auto now, scan());
    if (kept->damaged.empty() || now == present || round == kParityRoundsMax) {
      for (const auto segment : kept->damaged) {
        base::log(base::LogLevel::kWarning,
                  "parity: " + directory + "/" + store::segment_path(segment) +
                      " is damaged, and its parity is left as it is; run `varve repair`");
      }
      return true;
    }
  }
}

void RepositoryImpl::arrange_soon(SeriesId series) {
  if (!options_.arrange || options_.read_only) return;
  const std::lock_guard lock(arrange_mutex_);
  to_arrange_.insert(series);
  if (arranger_.joinable()) {
    arrange_wake_.notify_all();
    return;
  }
  arranger_ = std::jthread([this](const std::stop_token& stop) {
    base::name_this_thread("varve-arrange");
    lower_priority();
    ArrangeOptions options;
    options.bytes_per_second = options_.arrange_bytes_per_second;
    options.stop = stop;
    arrange_in_background(options);
  });
}

void RepositoryImpl::arrange_what_is_owed() {
  if (!options_.arrange || options_.read_only) return;
  const auto all = series();
  if (!all) {
    base::log(base::LogLevel::kWarning, "arranging: " + all.error().message());
    return;
  }
  for (const auto& one : *all) arrange_soon(one.id);
}

void RepositoryImpl::arrange_in_background(const ArrangeOptions& options) {
  bool told = false;  // About a full disk.
  while (true) {
    SeriesId series{};
    {
      std::unique_lock lock(arrange_mutex_);
      const bool wanted =
          arrange_wake_.wait(lock, options.stop, [this] { return !to_arrange_.empty(); });
      if (!wanted || options.stop.stop_requested()) return;
      series = *to_arrange_.begin();
      to_arrange_.erase(to_arrange_.begin());
    }
    ArrangeProgress done;
    const auto finished = arrange_series(series, options, Pace::kBackground, done);
    const bool full = !finished && finished.error().code() == ErrorCode::kNoSpace;
    if (!finished && !(full && told)) {
      base::log(base::LogLevel::kWarning, "arranging stops: " + finished.error().message());
    }
    told = full;
    if (finished && *finished) {
      const auto kept = protect_series(series, options, done);
      if (!kept) base::log(base::LogLevel::kWarning, "parity: " + kept.error().message());
      continue;
    }
    if (!finished && !full) continue;  // The next seal tries again.
    std::unique_lock lock(arrange_mutex_);
    // Made way for a deletion, or out of space.
    arrange_wake_.wait_for(lock, options.stop,
                           full ? std::chrono::milliseconds(kRetryAfter) : kCheckEvery,
                           [this, full] { return full && !to_arrange_.empty(); });
    to_arrange_.insert(series);
  }
}

void RepositoryImpl::stop_arranging() {
  std::jthread ended;
  {
    const std::lock_guard lock(arrange_mutex_);
    to_arrange_.clear();
    ended = std::move(arranger_);
  }
  if (ended.joinable()) {
    ended.request_stop();
    ended.join();
  }
}

}  // namespace varve::repo
