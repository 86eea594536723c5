// SPDX-License-Identifier: Apache-2.0
// Locks of objects in an object store: for some days, the store refuses to remove an object.
#pragma once

#include <cstdint>

namespace varve {

/// The credentials that may end an object lock early.
enum class LockMode : std::uint8_t {
  kCompliance,  ///< None.
  kGovernance,  ///< Those with the right s3:BypassGovernanceRetention.
};

/// The object lock that the objects of a repository get. See `varve config`.
struct ObjectLock {
  std::uint32_t days = 0;  ///< Length from the last extension on; 0 = no object lock.
  LockMode mode = LockMode::kCompliance;

  [[nodiscard]] bool on() const { return days != 0; }
  friend bool operator==(const ObjectLock&, const ObjectLock&) = default;
};

/// Limit for ObjectLock::days: an object lock cannot be taken back, and a number may be mistyped.
inline constexpr std::uint32_t kLockDaysMax = 3650;

}  // namespace varve
