// SPDX-License-Identifier: Apache-2.0
#include "fs/version_changes.h"

#include <fmt/core.h>

#include <string>
#include <thread>
#include <utility>

#include "base/log.h"
#include "fs/node_id.h"
#include "varve/check.h"

namespace varve::fs {
namespace {
constexpr std::chrono::milliseconds kReaderPoll{20};
constexpr std::chrono::milliseconds kCloseGrace{1000};

// The log is the only report of lost files for a seal by a rename.
void log_lost_files(Repository& repository, const VersionInfo& sealed) {
  const auto lost = repository.lost_files(sealed.series, sealed.number);
  if (!lost || lost->files == 0) return;
  std::string names;
  for (const auto& name : lost->names) names += (names.empty() ? "" : ", ") + name;
  base::log(base::LogLevel::kWarning,
            fmt::format("{}/{} was sealed with lost content in {} files: {}{}; store the source "
                        "again, then run `varve repair`",
                        sealed.series_name, sealed.name, lost->files, names,
                        lost->files > lost->names.size() ? ", ..." : ""));
}
}  // namespace

std::mutex& VersionChanges::mutex_of(SeriesId series) {
  const std::lock_guard lock(mutexes_mutex_);
  return mutexes_[series];
}

Result<SealOutcome> VersionChanges::seal(SeriesId series, VersionNumber number,
                                         std::string_view new_name, SealMode mode,
                                         SealWriters writers) {
  VARVE_TRY_ASSIGN(SealOutcome outcome, repository_.seal(series, number, new_name, mode, writers));
  forget_latest(series);
  log_lost_files(repository_, outcome.info);
  if (Slot* slot = nodes_.slots().find(series, number)) {
    auto reader = repository_.reader(series, number);
    if (!reader)
      return std::move(reader).error().with_context("the version is sealed, but cannot be read");
    slot->seal(outcome, std::move(*reader));
  }
  return outcome;
}

// The kernel reports a close only after close(2) has returned. A program's rename may therefore
// arrive before the report of the program's own close.
Result<SealOutcome> VersionChanges::seal_after_last_close(SeriesId series, VersionNumber number,
                                                          std::string_view new_name) {
  const auto end = std::chrono::steady_clock::now() + kCloseGrace;
  for (;;) {
    const std::uint64_t seen = closed_writers();
    auto sealed = seal(series, number, new_name);
    if (sealed || sealed.error().code() != ErrorCode::kBusy) return sealed;
    if (!wait_for_close(seen, end)) return sealed;
  }
}

// Seals the open version here rather than in Repository::open_version(): the kernel may still hold
// the version's inode numbers, and only the outcome of seal() translates the numbers.
Result<std::string> VersionChanges::end_present_version(const SeriesInfo& series,
                                                        std::string_view new_name,
                                                        VersionNumber source) {
  const auto open = repository_.version_to_end(series.id, new_name, source);
  if (!open) {
    if (open.error().code() == ErrorCode::kBusy) {
      base::log(base::LogLevel::kWarning, fmt::format("cannot open {}/{}: {}", series.name,
                                                      new_name, open.error().message()));
    }
    return open.error();
  }
  if (!*open) return std::string();
  VARVE_TRY(seal(series.id, (*open)->number, {}));
  base::log(base::LogLevel::kInfo, fmt::format("{}/{} was sealed, because {} is opened",
                                               series.name, (*open)->name, new_name));
  return (*open)->name;
}

// As for a seal: the kernel may not yet have reported the last close(2) when a program asks for the
// deletion.
Result<DeletionForecast> VersionChanges::delete_after_last_close(
    SeriesId series, const std::vector<VersionNumber>& numbers, const DeletionOptions& options) {
  const auto end = std::chrono::steady_clock::now() + kCloseGrace;
  DeletionOptions all_or_none = options;
  all_or_none.skip_held = false;
  for (;;) {
    auto deleted = repository_.delete_versions(series, numbers, all_or_none);
    if (deleted) return deleted;
    const ErrorCode code = deleted.error().code();
    const bool held = code == ErrorCode::kBusy || code == ErrorCode::kNotPermitted;
    if (code != ErrorCode::kBusy || std::chrono::steady_clock::now() >= end) {
      if (!held || !options.skip_held) return deleted;
      return repository_.delete_versions(series, numbers, options);
    }
    std::this_thread::sleep_for(kReaderPoll);
  }
}

void VersionChanges::note_closed_writer() {
  const std::lock_guard lock(writers_mutex_);
  ++writers_closed_;
  writers_left_.notify_all();
}

std::uint64_t VersionChanges::closed_writers() {
  const std::lock_guard lock(writers_mutex_);
  return writers_closed_;
}

bool VersionChanges::wait_for_close(std::uint64_t seen, std::chrono::steady_clock::time_point end) {
  std::unique_lock lock(writers_mutex_);
  return writers_left_.wait_until(lock, end, [&] { return writers_closed_ != seen; });
}

// The kernel caches the target. The notification locks no directory, so the call is allowed while a
// request holds a directory. A request for the target in progress delays the notification, but
// waits for no lock of the caller.
void VersionChanges::forget_latest(SeriesId series) {
  const Slot* directory = nodes_.slots().find(series, VersionNumber{});
  if (directory == nullptr || !kernel_.is_mounted()) return;
  kernel_.forget_pages(pack({.slot = directory->index(), .open = false, .low = kSeriesLatest}));
}

void VersionChanges::forget_names(SeriesId series, const std::vector<std::string>& names) {
  const Slot* directory = nodes_.slots().find(series, VersionNumber{});
  if (directory == nullptr || !kernel_.is_mounted()) return;
  const auto parent = pack({.slot = directory->index(), .open = false, .low = kSeriesDirectory});
  for (const std::string& name : names) {
    if (!name.empty()) kernel_.forget_name(parent, name);
  }
}

void VersionChanges::forget_series_names(const std::vector<std::string>& names) {
  if (!kernel_.is_mounted()) return;
  for (const std::string& name : names) kernel_.forget_name(kRootNodeId, name);
}

void VersionChanges::forget_contents(SeriesId series, const std::vector<VersionNumber>& numbers) {
  if (!kernel_.is_mounted()) return;
  for (const auto& handle : nodes_.files().all()) {
    if (handle->node_id() == 0) continue;
    for (const VersionNumber number : numbers) {
      if (nodes_.slots().find(series, number) != &handle->slot()) continue;
      kernel_.forget_pages(handle->node_id());
    }
  }
}

}  // namespace varve::fs
