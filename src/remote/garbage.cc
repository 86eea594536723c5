// SPDX-License-Identifier: Apache-2.0
#include "remote/garbage.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "remote/commit_log.h"
#include "remote/head.h"

namespace varve::remote {

namespace {

constexpr std::size_t kRemovedAtOnce = 1000;
// Limits for names and heads of one list kept in memory. The next pass handles the rest.
constexpr std::size_t kOrphansMax = std::size_t{1} << 20;
constexpr std::size_t kOldHeadsMax = std::size_t{1} << 20;
// After this number of refusals without a removal, the key is assumed to lack the permission.
constexpr std::size_t kRefusedMax = 16;
constexpr std::array<const char*, 4> kDataFolders = {"cat", "other", "seg", "vol"};

// Returns the names of the copies of the heads below `guard`.
Result<std::vector<std::string>> copies_below(CommitLog& log, std::uint64_t guard) {
  std::vector<std::string> names;
  VARVE_TRY(log.list_with_copies(0, [&](std::uint64_t number, bool is_copy) {
    if (is_copy && number < guard && names.size() < kOldHeadsMax) {
      names.push_back(copy_name(log.name(number)));
    }
  }));
  return names;
}

// Removes objects. Returns the objects refused by the store, which may be locked. Errors:
// kNotPermitted if the store refuses all objects, or the first kRefusedMax; without locks, if the
// store refuses any object.
Result<std::vector<std::string>> remove_objects(const GarbagePlace& place,
                                                const std::vector<std::string>& names) {
  std::vector<std::string> refused;
  std::optional<Error> refusal;
  bool went_on = false;
  Uploads requests(place.limits);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i == kRefusedMax) {
      VARVE_TRY(requests.finish());
      if (refused.size() == i) break;
      went_on = true;
    }
    const auto denied = std::make_shared<std::optional<Error>>();
    VARVE_TRY(requests.begin(
        0,
        [&place, name = names[i], denied]() -> Result<void> {
          const auto removed = place.bucket->remove(name);
          const bool may_be_locked =
              place.lock_s != 0 && !removed && removed.error().code() == ErrorCode::kNotPermitted;
          if (!may_be_locked) return removed;
          *denied = removed.error();
          return {};
        },
        [&, name = names[i], denied]() -> Result<void> {
          if (!*denied) return {};
          refused.push_back(name);
          refusal = *denied;
          return {};
        }));
  }
  VARVE_TRY(requests.finish());
  const bool stopped = refused.size() == kRefusedMax && !went_on;
  if (!refusal || (refused.size() < names.size() && !stopped)) return refused;
  VARVE_TRY(
      place.state->garbage().postpone(names, clock_range(*place.bucket, place.now_s).later_s));
  return *refusal;
}

}  // namespace

bool is_data_name(std::string_view name, std::string_view folder) {
  const auto copied = copied_name(name);
  if (copied) name = *copied;
  constexpr std::size_t kHolder = 16;
  constexpr std::size_t kNumber = 8;
  if (!name.starts_with(folder) || name.size() != folder.size() + kHolder + 1 + kNumber) {
    return false;
  }
  name.remove_prefix(folder.size());
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return std::ranges::all_of(name.substr(0, kHolder), is_hex) && name[kHolder] == '-' &&
         std::ranges::all_of(name.substr(kHolder + 1), is_hex);
}

ClockRange clock_range(const bucket::Bucket& bucket, std::int64_t now_s) {
  constexpr std::int64_t kIgnoredSeconds = 300;
  const auto ahead_s = bucket.clock_ahead().value_or(0);
  if (std::abs(ahead_s) <= kIgnoredSeconds) return {now_s, now_s};
  return {now_s + std::min<std::int64_t>(ahead_s, 0), now_s + std::max<std::int64_t>(ahead_s, 0)};
}

Result<std::uint64_t> note_orphans(const GarbagePlace& place, const IsNamed& is_named,
                                   const std::function<Result<std::uint64_t>()>& newest) {
  std::vector<std::string> found;
  for (const auto* const folder : kDataFolders) {
    const auto prefix = place.repository_id + "/" + folder + "/";
    VARVE_TRY(bucket::list_all(*place.bucket, prefix, "",
                               [&](const bucket::ObjectInfo& object) -> Result<void> {
                                 if (found.size() < kOrphansMax &&
                                     is_data_name(object.name, prefix) && !is_named(object.name)) {
                                   found.push_back(object.name);
                                 }
                                 return {};
                               }));
    // Without the separate permission, interrupted copies stay.
    const auto aborted = place.bucket->remove_unfinished(prefix);
    if (!aborted && aborted.error().code() != ErrorCode::kNotPermitted &&
        aborted.error().code() != ErrorCode::kUnsupported) {
      return aborted.error();
    }
  }
  // A writer that has uploaded a found object can still create the head after the newest head, and
  // no head after that.
  VARVE_TRY_ASSIGN(const auto number, newest());
  const auto noted_s = clock_range(*place.bucket, place.now_s).later_s;
  return place.state->garbage().add(found, noted_s, number + 1);
}

Result<std::uint64_t> remove_garbage(const GarbagePlace& place, std::uint64_t head,
                                     const IsNamed& is_named) {
  std::uint64_t removed = 0;
  const auto now = clock_range(*place.bucket, place.now_s);
  GarbageLocks locks;
  if (place.lock_s != 0) {
    locks.noted_before = place.now_s + place.bucket->clock_ahead().value_or(0);
    locks.unknown_before = now.earlier_s - place.lock_s;
  }
  while (true) {
    VARVE_TRY_ASSIGN(const auto names, place.state->garbage().due(now.earlier_s - place.wait_s,
                                                                  head, kRemovedAtOnce, locks));
    if (names.empty()) return removed;
    std::vector<std::string> unnamed;
    std::ranges::copy_if(names, std::back_inserter(unnamed),
                         [&](const std::string& name) { return !is_named(name); });
    VARVE_TRY_ASSIGN(const auto refused, remove_objects(place, unnamed));  // O48
    // Later than any time requested by this loop, so the loop ends.
    VARVE_TRY(place.state->garbage().postpone(refused, now.later_s));
    auto gone = names;
    std::erase_if(gone, [&](const std::string& name) {
      return std::ranges::find(refused, name) != refused.end();
    });
    VARVE_TRY(place.state->garbage().forget(gone));
    removed += unnamed.size() - refused.size();
  }
}

Result<std::uint64_t> remove_old_heads(const GarbagePlace& place, const HeadRetention& retention) {
  struct Known {
    std::uint64_t number = 0;
    std::int64_t created_s = 0;
  };
  std::vector<Known> heads;
  Known newest;
  CommitLog log(*place.bucket, place.repository_id);
  VARVE_TRY(log.list(0, [&](std::uint64_t number, Timestamp created) {
    newest = {number, created.seconds};
    if (heads.size() < kOldHeadsMax) heads.push_back(newest);
  }));
  if (heads.empty()) return std::uint64_t{0};
  std::uint64_t guard = 0;
  for (const auto& head : heads) {
    const bool is_behind = head.number < newest.number - std::min(newest.number, retention.heads);
    // The lock of a head below the guard head began before the guard head.
    const auto seconds = std::max(retention.seconds, place.lock_s);
    if (is_behind && newest.created_s - head.created_s >= seconds) {
      guard = head.number;
    }
  }
  std::vector<std::string> names;
  for (const auto& head : heads) {
    if (head.number < guard) names.push_back(log.name(head.number));
  }
  VARVE_TRY_ASSIGN(const auto copies, copies_below(log, guard));
  const auto removed = [&](const std::vector<std::string>& objects) -> Result<std::uint64_t> {
    VARVE_TRY_ASSIGN(const auto refused, remove_objects(place, objects));
    return std::uint64_t{objects.size() - refused.size()};
  };
  VARVE_TRY(removed(copies));  // First: a copy without a head would count as a lost head.
  return removed(names);
}

}  // namespace varve::remote
