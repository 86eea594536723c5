// SPDX-License-Identifier: Apache-2.0
// Locks of objects in an object store: for some days, the store refuses to remove an object.
#pragma once

#include <cstdint>

namespace varve {

/// The credentials that may end a lock early.
enum class LockMode : std::uint8_t {
  kCompliance,  ///< None.
  kGovernance,  ///< Those with the right s3:BypassGovernanceRetention.
};

/// The lock that the objects of a repository get. See `varve config`.
struct ObjectLock {
  std::uint32_t days = 0;  ///< Length of the lock from the last extension on; 0 = no lock.
  LockMode mode = LockMode::kCompliance;

  [[nodiscard]] bool on() const { return days != 0; }
  friend bool operator==(const ObjectLock&, const ObjectLock&) = default;
};

/// Limit for ObjectLock::days. A lock cannot be taken back, so a mistyped number must not be large.
inline constexpr std::uint32_t kLockDaysMax = 3650;

}  // namespace varve
