// SPDX-License-Identifier: Apache-2.0
// Keeps the objects that the newest head needs locked in the store. docs/decisions/104.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "bucket/locking_bucket.h"
#include "replica/replica_state.h"
#include "replica/uploads.h"
#include "varve/result.h"

namespace varve::replica {

/// The key of the folder's state for the length of a lock in days; a number, 0 without locks.
inline constexpr std::string_view kLockDays = "lock days";
/// The key for the time at which the first lock ends, in seconds since 1970.
inline constexpr std::string_view kLocksEnd = "locks end";
/// Extensions of one call that are not urgent.
inline constexpr std::size_t kLocksAtOnce = 1000;

/// The store and the folder's notes about it. Lifetime: the objects outlive their user.
struct LockPlace {
  bucket::LockingBucket* bucket = nullptr;
  ReplicaState* state = nullptr;
  UploadLimits limits{};
  std::size_t at_once = kLocksAtOnce;
};

/// The work of one call of extend_locks().
struct LockReport {
  std::uint64_t extended = 0;
  std::uint64_t refused = 0;   ///< Objects whose lock the store did not extend.
  std::uint64_t left = 0;      ///< More than 0 if a later call has to extend others.
  std::uint64_t examined = 0;  ///< Objects that the call looked at.
  std::string refusal{};       ///< The store's reason for one of the refused ones.
};

/// Extends the locks of the objects that the newest head needs, and notes when locks end. It does
/// nothing, without a request, while the lock is off or no lock ends within half of its length.
/// Extends the locks that end within a quarter of their length, and `at_once` others at most, those
/// that end first. So each object costs one request in half of the length. An object whose lock is
/// not known counts as one whose lock has ended. Errors: those of the store that pass, and those of
/// the state.
[[nodiscard]] Result<LockReport> extend_locks(const LockPlace& place);

}  // namespace varve::replica
