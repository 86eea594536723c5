// SPDX-License-Identifier: Apache-2.0
#include "repo/source_guard.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/tree_size.h"
#include "io/file_system.h"
#include "store/repository_names.h"
#include "store/repository_paths.h"
#include "transfer/source_filter.h"
#include "varve/browse.h"
#include "varve/retention.h"
#include "varve/upkeep.h"

namespace varve::repo {
namespace {

/// With fewer files, a rotated log or an emptied spool would be most of the source.
constexpr std::uint64_t kFilledFilesMin = 10;

constexpr const char* kAdvice =
    "nothing was stored. Check that the directory is mounted and complete; --allow-shrunk stores "
    "it as it is";

/// Returns the loss from `before` to `now` in percent, rounded down.
std::uint64_t lost_percent(std::uint64_t before, std::uint64_t now) {
  if (before <= now) return 0;
  // Sizes up to 2^64 would overflow in integers.
  return static_cast<std::uint64_t>(100.0 * static_cast<double>(before - now) /
                                    static_cast<double>(before));
}

bool lost_nine_tenths(std::uint64_t before, std::uint64_t now) {
  return before > 0 && now <= before / 10;
}

/// Returns whether a version has a time that cannot be true: the version would be the newest one
/// for as long as no store succeeds.
bool is_of_future(const VersionInfo& version, const Timestamp& now) {
  const bool claims_later = version.claimed_at && *version.claimed_at > version.sealed_at;
  return claims_later || version.sealed_at > now;
}

/// Returns whether a directory with `names` and `bytes` has lost too much of a version.
bool is_shrunk(const VersionInfo& version, std::uint64_t names, std::uint64_t bytes) {
  return base::is_partial({names, bytes}, {version.entries, version.logical_bytes});
}

bool is_filled(const Attributes& attributes) {
  return S_ISREG(attributes.mode) && attributes.data_bytes > 0;
}

/// Returns the number of names of files with data. Skips unreadable entries, because damage of the
/// newest version is no reason against another version.
std::uint64_t filled_files(VersionReader& version) {
  std::uint64_t count = 0;
  for (Rank rank = 1; rank <= version.info().entries; ++rank) {
    const auto entry = version.get(rank);
    if (entry && is_filled(entry->attributes)) ++count;
  }
  return count;
}

Result<std::uint64_t> filled_files(VersionWriter& version) {
  std::uint64_t count = 0;
  std::vector<Ino> folders{kRootIno};
  while (!folders.empty()) {
    const Ino folder = folders.back();
    folders.pop_back();
    VARVE_TRY(version.list(folder, "", [&](std::string_view, const OpenEntry& entry) {
      if (S_ISDIR(entry.attributes.mode)) folders.push_back(entry.ino);
      if (is_filled(entry.attributes)) ++count;
      return true;
    }));
  }
  return count;
}

/// Returns a sentence about the unreadable entries; "" if the store read all entries.
std::string problems_text(const TransferReport& report) {
  if (report.problems.empty()) return {};
  return fmt::format(". There were {} problems; the first is: {}", report.problems.size(),
                     report.problems.front());
}

}  // namespace

Result<SourceGuard> SourceGuard::create(Repository& repository, const StoreRequest& request) {
  bool is_on = request.guard && request.seals && !request.options.only;
  if (is_on) {
    VARVE_TRY_ASSIGN(const UpkeepSettings settings, repository.upkeep_settings());
    is_on = settings.guards_sources;
  }
  return SourceGuard(repository, request, is_on);
}

// Each incomplete version would otherwise be a smaller measure for the next one. A version that had
// lost too much was sealed at the user's word, and so replaces the versions before.
Result<std::vector<VersionInfo>> SourceGuard::measures() {
  const auto series = repository_.find_series(request_.series);
  if (!series) return std::vector<VersionInfo>();
  VARVE_TRY_ASSIGN(auto versions, repository_.versions(series->id));
  std::erase_if(versions, [](const VersionInfo& version) {
    const bool is_whole = !version.origin || version.origin->whole;
    return version.state != VersionState::kSealed || !is_whole;
  });
  const auto now = base::SystemClock().now();
  const bool has_present = std::ranges::any_of(
      versions, [&](const VersionInfo& version) { return !is_of_future(version, now); });
  if (has_present) {
    std::erase_if(versions, [&](const VersionInfo& version) { return is_of_future(version, now); });
  }
  std::ranges::sort(versions, is_newer);
  const auto complete = std::ranges::find(versions, 0U, &VersionInfo::problems);
  if (complete != versions.end()) versions.erase(complete + 1, versions.end());
  std::vector<VersionInfo> kept;
  for (; !versions.empty(); versions.pop_back()) {
    const VersionInfo& next = versions.back();
    std::erase_if(kept, [&next](const VersionInfo& before) {
      return is_shrunk(before, next.entries, next.logical_bytes) ||
             lost_nine_tenths(before.logical_bytes, next.logical_bytes);
    });
    kept.push_back(next);
  }
  return kept;
}

Result<void> SourceGuard::refuse_empty() {
  VARVE_TRY_ASSIGN(const auto versions, measures());
  const std::string names = versions.empty()
                                ? std::string()
                                : fmt::format(", and {}/{} has {} names", request_.series,
                                              versions.front().name, versions.front().entries);
  return Error(ErrorCode::kRefused,
               fmt::format("{} is empty{}; {}", request_.directory, names, kAdvice));
}

Result<void> SourceGuard::check_before_opening() {
  if (!is_on_) return {};
  VARVE_TRY_ASSIGN(const bool is_empty,
                   transfer::is_empty_source(request_.directory, request_.options));
  if (!is_empty) return {};
  note_refused(repository_, request_.series, RefusalReason::kEmpty);
  return refuse_empty();
}

// The walk has counted names and bytes anyway, so the comparison reads nothing.
Result<void> SourceGuard::check_stored(VersionWriter& version, const TransferReport& report) {
  if (!is_on_) return {};
  const SourceCounts counts{report.entries, report.bytes + report.unchanged_bytes,
                            [&version] { return filled_files(version); }};
  auto checked = compare(counts);
  if (checked || checked.error().code() != ErrorCode::kRefused) return checked;
  return std::move(checked).error().with_more(problems_text(report));
}

Result<void> SourceGuard::judge(StorePlan& plan) {
  if (!is_on_) return {};
  VARVE_TRY_ASSIGN(const bool is_empty,
                   transfer::is_empty_source(request_.directory, request_.options));
  const SourceCounts counts{is_empty ? 0 : plan.entries, plan.bytes + plan.unchanged_bytes,
                            [&plan] { return Result<std::uint64_t>(plan.filled); }};
  const auto compared = compare(counts);
  if (compared) return {};
  if (compared.error().code() != ErrorCode::kRefused) return compared.error();
  plan.refusal = compared.error().message();
  return {};
}

Result<void> SourceGuard::compare(const SourceCounts& counts) {
  if (counts.names == 0) return refuse_empty();
  VARVE_TRY_ASSIGN(const auto versions, measures());
  for (const VersionInfo& version : versions) {
    if (!is_shrunk(version, counts.names, counts.bytes)) continue;
    return Error(ErrorCode::kRefused,
                 fmt::format("{} has lost {} % of the names and {} % of the bytes of {}/{}; {}",
                             request_.directory, lost_percent(version.entries, counts.names),
                             lost_percent(version.logical_bytes, counts.bytes), request_.series,
                             version.name, kAdvice));
  }
  const auto largest = std::ranges::max_element(versions, {}, &VersionInfo::logical_bytes);
  const bool is_less =
      largest != versions.end() && lost_nine_tenths(largest->logical_bytes, counts.bytes);
  return is_less ? compare_filled(*largest, counts) : Result<void>();
}

// Only a source that lost nearly all bytes pays for the walks through both versions.
Result<void> SourceGuard::compare_filled(const VersionInfo& version, const SourceCounts& counts) {
  VARVE_TRY_ASSIGN(const auto reader, repository_.reader(version.series, version.number));
  const std::uint64_t before = filled_files(*reader);
  VARVE_TRY_ASSIGN(const std::uint64_t now, counts.filled());
  if (before < kFilledFilesMin || !base::lost_more_than_half(before, now)) return {};
  return Error(ErrorCode::kRefused,
               fmt::format("{} has {} files with content, and {}/{} has {}; {} % of the bytes are "
                           "lost; {}",
                           request_.directory, now, request_.series, version.name, before,
                           lost_percent(version.logical_bytes, counts.bytes), kAdvice));
}

void note_refused(Repository& repository, const std::string& series, RefusalReason reason) {
  const auto found = repository.find_series(series);
  if (!found) return;
  const auto noted = repository.note_refused_store(found->id, reason);
  if (!noted) {
    base::log(base::LogLevel::kWarning,
              "the refused store is not noted: " + noted.error().message());
  }
}

bool has_open_version(Repository& repository, const std::string& series,
                      const std::string& version) {
  const auto found = repository.find_series(series);
  if (!found) return false;
  const auto writer = repository.writer(found->id);
  return writer && (*writer)->info().name == version;
}

void drop_version(Repository& repository, io::FileSystem& files, const DropVersion& drop,
                  const VersionInfo& version, bool new_series) {
  auto dropped = drop ? drop(version.series, version.number)
                      : repository.abandon_version(version.series, version.number, true);
  if (dropped) {
    const auto folder = store::RepositoryPaths(repository.path()).series(version.series);
    (void)files.remove(folder + "/" + store::unfinished_sources_name(version.number));
  }
  if (dropped && new_series) dropped = repository.remove_series(version.series_name);
  if (!dropped) {
    base::log(base::LogLevel::kWarning, version.name + " is incomplete and could not be dropped: " +
                                            dropped.error().message());
  }
}

}  // namespace varve::repo
