// SPDX-License-Identifier: Apache-2.0
#include "remote/object_locks.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "remote/changes.h"
#include "remote/head.h"
#include "remote/small_copies.h"

namespace varve::remote {

namespace {

constexpr std::uint64_t kRefusalsMax = 16;

// Puts the objects of the newest head in order, and returns the number of objects.
Result<std::size_t> order_locks(ReplicaState& state) {
  VARVE_TRY_ASSIGN(const auto text, state.head());
  if (!text) return std::size_t{0};
  VARVE_TRY_ASSIGN(const auto head, decode_head(*text));
  auto live = names_of(head);
  live.insert(kSuperblockName);
  VARVE_TRY_ASSIGN(const auto map, state.objects());
  live.merge(names_of(map));
  VARVE_TRY_ASSIGN(const bool has_copies, has_all_copies(state));
  if (!has_copies) std::erase_if(live, [](const auto& name) { return copied_name(name); });
  VARVE_TRY(state.locks().order(live, head.number));
  return live.size();
}

// Returns the locks to extend now. Counts the remaining due locks in `left`: at least 1 if any.
Result<std::vector<ObjectLockEnd>> due_locks(const LockPlace& place, std::int64_t now_s,
                                             std::int64_t period_s, std::uint64_t& left) {
  const auto urgent_to = now_s + period_s / 4;
  const auto max = place.at_once + 1;
  VARVE_TRY_ASSIGN(auto others, place.state->locks().ending(0, 1, max));
  VARVE_TRY_ASSIGN(const auto later,
                   place.state->locks().ending(urgent_to, now_s + period_s / 2, max));
  others.insert(others.end(), later.begin(), later.end());
  if (others.size() > place.at_once) {
    left = others.size() - place.at_once;
    others.resize(place.at_once);
  }
  VARVE_TRY_ASSIGN(
      auto due, place.state->locks().ending(1, urgent_to, std::numeric_limits<std::size_t>::max()));
  due.insert(due.end(), others.begin(), others.end());
  return due;
}

Result<void> note_first_end(ReplicaState& state) {
  VARVE_TRY_ASSIGN(const auto first,
                   state.locks().ending(0, std::numeric_limits<std::int64_t>::max(), 1));
  const auto end = first.empty() ? 0 : static_cast<std::uint64_t>(first.front().ends_s);
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
  VARVE_TRY_ASSIGN(const bool has_order, place.state->locks().has_order());
  if (!rule.on()) {
    if (has_order) VARVE_TRY(place.state->locks().forget_order());
    return report;
  }
  VARVE_TRY(place.state->locks().set_ends(fresh));  // O56
  if (!has_order) {
    VARVE_TRY_ASSIGN(const auto live, order_locks(*place.state));
    report.examined += live;
  }
  const auto now_s = place.bucket->store_seconds();
  const auto period_s = bucket::seconds_of(rule);
  auto due = due_locks(place, now_s, period_s, report.left);
  if (!due && due.error().code() == ErrorCode::kStale) {
    VARVE_TRY_ASSIGN(const auto live, order_locks(*place.state));
    report.examined += live;
    due = due_locks(place, now_s, period_s, report.left);
  }
  VARVE_TRY(due);
  report.examined += fresh.size() + due->size();
  std::map<std::string, std::int64_t> changed;
  const auto work = [&]() -> Result<void> {
    Uploads requests(place.limits);
    for (const auto& lock : *due) {
      // A store refusing the first objects refuses all objects.
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
  VARVE_TRY(place.state->locks().set_ends(changed));  // O56
  VARVE_TRY(note_first_end(*place.state));
  VARVE_TRY(done);
  return report;
}

}  // namespace varve::remote
