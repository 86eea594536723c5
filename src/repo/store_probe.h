// SPDX-License-Identifier: Apache-2.0
// Tries what an object store does, and keeps the result in the folder. docs/decisions/105.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "bucket/abilities.h"
#include "bucket/bucket.h"
#include "replica/replica_state.h"
#include "varve/object_lock.h"
#include "varve/replication.h"
#include "varve/result.h"

namespace varve::repo {

/// Says whether probe_store() tries locks although none is wanted. That leaves a small object,
/// which is locked for two days, in a bucket that has locks.
enum class LockProbe : std::uint8_t { kIfWanted, kAlways };

/// Tries what the store does. With a `lock` that is on, the store must lock objects.
/// Errors: kUnsupported as require_locks(); those of probe_abilities().
[[nodiscard]] Result<bucket::ProbeRecord> probe_store(bucket::Bucket& bucket,
                                                      const ObjectLock& lock,
                                                      const base::Clock& clock, LockProbe locks);

/// Removes what trials by keys that may not remove objects left more than a day ago. Locked objects
/// stay. Errors: those of the bucket.
[[nodiscard]] Result<void> remove_old_probes(bucket::Bucket& bucket, std::int64_t now_s);

/// Reads and replaces the folder's record of the last probe.
[[nodiscard]] Result<std::optional<bucket::ProbeRecord>> probe_record(
    const replica::ReplicaState& state);
[[nodiscard]] Result<void> set_probe_record(replica::ReplicaState& state,
                                            const bucket::ProbeRecord& record);

/// The objects of the newest head whose locks a check looks at.
struct LockCheck {
  std::int64_t period_s = 0;  ///< Length of a lock in seconds.
  std::int64_t now_s = 0;     ///< The present time by the store's clock.
};
/// Asks the store for the lock of each object, one request for each. Returns the objects whose lock
/// is missing, or ends within a quarter of its length. Errors: those of the store.
[[nodiscard]] Result<std::vector<StoreDamage>> weak_locks(bucket::Bucket& bucket,
                                                          const std::vector<std::string>& objects,
                                                          const LockCheck& check);

/// Returns `error`, or advice if it says that the store has no head of a folder's repository, and
/// the store has another repository or none: the place was used again.
[[nodiscard]] Error explain_lack(bucket::Bucket& bucket, const std::string& folder,
                                 const Error& error, const std::string& repository_id);

}  // namespace varve::repo
