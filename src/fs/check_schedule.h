// SPDX-License-Identifier: Apache-2.0
// The times at which the watchdog of a LoopPool checks the leader.
#pragma once

#include <cstdint>

namespace varve::fs {

/// Decides from the leader's turn at each check when the next check follows. A turn is odd while
/// the leader processes a request, and each request changes the turn twice. Not thread-safe.
class CheckSchedule {
 public:
  enum class Next {
    kSoon,       ///< After one patience.
    kSeldom,     ///< After kCalmPatience times the patience: no request waits, and each check takes
                 ///< the processor from the leader.
    kWhenWoken,  ///< No request came for a while: the leader wakes the watchdog with the next
                 ///< request.
  };

  /// Time between two checks while no request waits, in multiples of the patience. The first
  /// request that waits then delays others by at most this time and one patience.
  static constexpr unsigned kCalmPatience = 8;

  /// Notes the leader's turn at a check. Returns when the next check follows.
  Next note(std::uint64_t turn);

  /// Returns whether the leader processes the same request as at the check before.
  [[nodiscard]] bool request_is_late() const { return is_late_; }
  /// Returns whether a late request lasts so long that another leader is needed even if the leader
  /// computes.
  [[nodiscard]] bool request_is_very_late() const;

 private:
  std::uint64_t seen_ = 0;
  unsigned same_turn_checks_ = 0;
  unsigned calm_checks_ = 0;  // Since the last late request.
  bool is_late_ = false;
};

}  // namespace varve::fs
