// SPDX-License-Identifier: Apache-2.0
#include "replica/object_locks.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "replica/changes.h"
#include "replica/head.h"

namespace varve::replica {

namespace {

constexpr std::uint64_t kRefusalsMax = 16;

struct DueLock {
  std::string name{};
  std::int64_t ends_s = 0;  // 0 if it is not known.
};

// Returns the objects of the newest head; none before the first one.
Result<std::set<std::string>> live_objects(const ReplicaState& state) {
  std::set<std::string> live;
  VARVE_TRY_ASSIGN(const auto text, state.head());
  if (!text) return live;
  VARVE_TRY_ASSIGN(const auto head, decode_head(*text));
  live.insert(kSuperblockName);
  live.insert(head_name(head.repository_id, head.number));
  for (const auto& object : head.catalog) live.insert(object.name);
  VARVE_TRY_ASSIGN(const auto map, state.objects());
  live.merge(names_of(map));
  return live;
}

// Returns the locks to extend now, and counts those that wait.
std::vector<DueLock> due_locks(const std::set<std::string>& live,
                               const std::map<std::string, std::int64_t>& ends, std::int64_t now_s,
                               std::int64_t period_s, std::size_t at_once, std::uint64_t& left) {
  std::vector<DueLock> urgent;
  std::vector<DueLock> others;
  for (const auto& name : live) {
    const auto known = ends.find(name);
    const DueLock lock{name, known == ends.end() ? 0 : known->second};
    if (lock.ends_s >= now_s + period_s / 2) continue;
    const bool is_urgent = lock.ends_s != 0 && lock.ends_s < now_s + period_s / 4;
    (is_urgent ? urgent : others).push_back(lock);
  }
  std::ranges::sort(others, {}, &DueLock::ends_s);
  if (others.size() > at_once) {
    left = others.size() - at_once;
    others.resize(at_once);
  }
  urgent.insert(urgent.end(), others.begin(), others.end());
  return urgent;
}

Result<void> note_first_end(ReplicaState& state, const std::set<std::string>& live,
                            const std::map<std::string, std::int64_t>& ends) {
  auto first = std::numeric_limits<std::int64_t>::max();
  for (const auto& name : live) {
    const auto known = ends.find(name);
    first = std::min(first, known == ends.end() ? 0 : known->second);
  }
  const auto end = live.empty() ? 0 : static_cast<std::uint64_t>(first);
  VARVE_TRY_ASSIGN(const auto noted, state.number(kLocksEnd));
  return noted == end ? Result<void>() : state.set_number(kLocksEnd, end);
}

bool will_pass(const Error& error) {
  return error.code() == ErrorCode::kUnavailable || error.code() == ErrorCode::kInterrupted ||
         error.code() == ErrorCode::kCorrupt;
}

}  // namespace

Result<LockReport> extend_locks(const LockPlace& place) {
  LockReport report;
  const auto rule = place.bucket->rule();
  const auto fresh = place.bucket->take_locked();
  VARVE_TRY_ASSIGN(const auto days, place.state->number(kLockDays));
  if (days != rule.days) VARVE_TRY(place.state->set_number(kLockDays, rule.days));
  if (!rule.on()) return report;
  VARVE_TRY_ASSIGN(const auto live, live_objects(*place.state));
  VARVE_TRY_ASSIGN(auto ends, place.state->lock_ends());
  std::map<std::string, std::int64_t> changed;
  for (const auto& [name, end] : fresh) {
    ends[name] = end;
    changed[name] = end;
  }
  const auto now_s = place.bucket->store_seconds();
  const auto period_s = bucket::seconds_of(rule);
  const auto due = due_locks(live, ends, now_s, period_s, place.at_once, report.left);
  VARVE_TRY(place.state->set_lock_ends(changed, live));
  changed.clear();
  const auto work = [&]() -> Result<void> {
    Uploads requests(place.limits);
    for (const auto& lock : due) {
      // A store that refuses the first ones refuses the others, too.
      if (report.refused >= kRefusalsMax && report.extended == 0) break;
      const auto refusal = std::make_shared<std::string>();
      VARVE_TRY(requests.begin(
          0,
          [bucket = place.bucket, name = lock.name, rule, refusal]() -> Result<void> {
            const auto extended = bucket->lock(name, rule);
            if (!extended && will_pass(extended.error())) return extended.error();
            if (!extended) *refusal = extended.error().message();
            return {};
          },
          [&, name = lock.name, refusal]() -> Result<void> {
            if (refusal->empty()) {
              ++report.extended;
              changed[name] = now_s + period_s;
            } else {
              ++report.refused;
              report.refusal = *refusal;
            }
            return {};
          }));
    }
    return requests.finish();
  };
  const auto done = work();
  if (!changed.empty()) VARVE_TRY(place.state->set_lock_ends(changed, {}));  // O56
  for (const auto& [name, end] : changed) ends[name] = end;
  VARVE_TRY(note_first_end(*place.state, live, ends));
  VARVE_TRY(done);
  return report;
}

}  // namespace varve::replica
