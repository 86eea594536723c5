// SPDX-License-Identifier: Apache-2.0
#include "cli/snapshot_list.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstddef>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <tuple>

#include "base/calendar_text.h"
#include "base/system_error.h"
#include "varve/version_name.h"

namespace varve::cli {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Digits of the numbers of a date, from year to seconds.
constexpr std::array<std::size_t, 6> kDigits = {4, 2, 2, 2, 2, 2};

/// Returns the reason why a directory is no complete snapshot; "" for a possible snapshot.
std::string_view incomplete(std::string_view name) {
  if (name.starts_with('.')) return "a hidden directory";
  if (name.starts_with("_delete.")) return "a snapshot that rsnapshot is deleting";
  for (const std::string_view end :
       {".inProgress", ".inprogress", ".incomplete", ".partial", ".tmp"}) {
    if (name.ends_with(end)) return "an unfinished snapshot";
  }
  return "";
}

std::string utc_name(const Timestamp& time) {
  return base::calendar_text(time, ::gmtime_r, "%04Y-%m-%dT%H%M%SZ")
      .value_or(std::to_string(time.seconds));
}

}  // namespace

std::optional<Timestamp> time_in_name(std::string_view name) {
  // The date begins at the first four digits; a prefix has no digits.
  std::size_t at = 0;
  while (at < name.size() && !is_digit(name[at])) ++at;
  std::array<int, 6> numbers{0, 0, 0, 0, 0, 0};
  std::size_t taken = 0;
  for (; taken < kDigits.size() && at < name.size(); ++taken) {
    std::size_t from = at;
    if (taken > 0 && !is_digit(name[from])) ++from;
    const std::size_t end = from + kDigits[taken];
    if (end > name.size()) break;
    const std::string_view digits = name.substr(from, kDigits[taken]);
    if (!std::ranges::all_of(digits, is_digit)) break;
    for (const char c : digits) numbers[taken] = numbers[taken] * 10 + (c - '0');
    at = end;
  }
  const bool utc = at + 1 == name.size() && name[at] == 'Z';
  if (taken < 3 || (at != name.size() && !utc)) return std::nullopt;
  std::tm parts{};
  parts.tm_year = numbers[0] - 1900;
  parts.tm_mon = numbers[1] - 1;
  parts.tm_mday = numbers[2];
  parts.tm_hour = numbers[3];
  parts.tm_min = numbers[4];
  parts.tm_sec = numbers[5];
  parts.tm_isdst = -1;
  std::tm normal = parts;
  const std::time_t seconds = utc ? ::timegm(&normal) : ::mktime(&normal);
  const bool real = normal.tm_year == parts.tm_year && normal.tm_mon == parts.tm_mon &&
                    normal.tm_mday == parts.tm_mday && parts.tm_hour < 24 && parts.tm_min < 60 &&
                    parts.tm_sec < 60;
  return real ? std::optional(Timestamp{seconds, 0}) : std::nullopt;
}

Result<SnapshotList> list_snapshots(const std::string& folder) {
  std::error_code error;
  std::filesystem::directory_iterator names(folder, error);
  if (error) return base::io_error(folder, error.value());
  SnapshotList list;
  for (const auto& entry : names) {
    const std::string name = entry.path().filename().string();
    struct stat status {};
    if (::lstat(entry.path().c_str(), &status) != 0) return base::system_error(name, errno);
    if (!S_ISDIR(status.st_mode)) continue;
    if (const auto reason = incomplete(name); !reason.empty()) {
      list.left_out.push_back(name + ": not imported: " + std::string(reason));
      continue;
    }
    Snapshot snapshot{name, name, {}};
    if (const auto time = time_in_name(name)) {
      snapshot.time = *time;
    } else {
      snapshot.time = {status.st_mtim.tv_sec, static_cast<std::uint32_t>(status.st_mtim.tv_nsec)};
      snapshot.version = utc_name(snapshot.time);
    }
    if (auto allowed = check_version_name(snapshot.version, VersionState::kSealed); !allowed) {
      return std::move(allowed).error().with_context(name);
    }
    list.snapshots.push_back(std::move(snapshot));
  }
  std::ranges::sort(list.snapshots, [](const Snapshot& a, const Snapshot& b) {
    return std::tie(a.time, a.version) < std::tie(b.time, b.version);
  });
  std::ranges::sort(list.left_out);
  const auto same = std::ranges::adjacent_find(list.snapshots, {}, &Snapshot::version);
  if (same != list.snapshots.end()) {
    return Error(
        ErrorCode::kInvalid,
        fmt::format("{} and {} would both become the version {}; rename one of them to its "
                    "date, such as 2027-01-31-183000",
                    same->directory, std::next(same)->directory, same->version));
  }
  return list;
}

}  // namespace varve::cli
