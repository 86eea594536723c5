// SPDX-License-Identifier: Apache-2.0
// Keeps the objects of the newest head locked in the store. docs/decisions/104.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "bucket/locking_bucket.h"
#include "remote/replica_state.h"
#include "remote/uploads.h"
#include "varve/result.h"

namespace varve::remote {

/// The key of the folder's state for the length of a lock in days; a number, 0 without locks.
inline constexpr std::string_view kLockDays = "lock days";
/// The key of the time at which the first lock ends, in seconds since 1970.
inline constexpr std::string_view kLocksEnd = "locks end";
/// Limit for non-urgent extensions per call.
inline constexpr std::size_t kLocksAtOnce = 1000;

/// The store, and the folder's notes about the store. Lifetime: the objects outlive all users of
/// the place.
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
  std::uint64_t left = 0;      ///< More than 0 if a later call has more locks to extend.
  std::uint64_t examined = 0;  ///< Objects examined by the call.
  std::string refusal{};       ///< The store's reason for one refused object.
};

/// Extends the locks of the objects of the newest head, and notes the ends of locks. Does nothing,
/// and sends no request, while the lock is off or no lock ends within half of its length. Extends
/// all locks ending within a quarter of the length, and at most `at_once` more, in the order of
/// their ends. So each object costs one request per half of the length. An unknown lock counts as
/// ended. Errors: transient errors of the store; errors of the state.
[[nodiscard]] Result<LockReport> extend_locks(const LockPlace& place);

}  // namespace varve::remote
