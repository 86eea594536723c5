// SPDX-License-Identifier: Apache-2.0
#include "fs/check_schedule.h"

namespace varve::fs {
namespace {

/// Number of checks without a new request before the watchdog sleeps.
constexpr unsigned kQuietChecks = 10;
/// Number of checks before a computing leader loses the lead.
constexpr unsigned kComputingChecks = 20;
/// Number of checks without a waiting request before checks become rarer.
constexpr unsigned kCalmChecks = 50;

}  // namespace

CheckSchedule::Next CheckSchedule::note(std::uint64_t turn) {
  const bool is_busy = (turn & 1) != 0;
  same_turn_checks_ = turn == seen_ ? same_turn_checks_ + 1 : 0;
  is_late_ = is_busy && turn == seen_;
  calm_checks_ = is_late_ ? 0 : calm_checks_ + 1;
  seen_ = turn;
  if (!is_busy && same_turn_checks_ >= kQuietChecks) {
    same_turn_checks_ = calm_checks_ = 0;
    return Next::kWhenWoken;
  }
  return calm_checks_ >= kCalmChecks && !is_busy ? Next::kSeldom : Next::kSoon;
}

bool CheckSchedule::request_is_very_late() const {
  return is_late_ && same_turn_checks_ >= kComputingChecks;
}

}  // namespace varve::fs
