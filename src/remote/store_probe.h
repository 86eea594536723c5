// SPDX-License-Identifier: Apache-2.0
// Tries the abilities of an object store, and keeps the result in the folder. docs/decisions/105.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "bucket/abilities.h"
#include "bucket/bucket.h"
#include "remote/bucket_config.h"
#include "remote/bucket_hooks.h"
#include "remote/replica_state.h"
#include "varve/object_lock.h"
#include "varve/object_store.h"
#include "varve/replication.h"
#include "varve/result.h"

namespace varve::remote {

/// Whether probe_store() tries locks even if no lock is wanted. The trial leaves a small object,
/// locked for two days, in a bucket with locks.
enum class LockProbe : std::uint8_t { kIfWanted, kAlways };

/// Opens one more client of a store, with connections of its own.
using ClientOpener = std::function<Result<std::unique_ptr<bucket::Bucket>>()>;

/// Returns how to open the clients of races in a folder's store; empty if `hooks` open none.
[[nodiscard]] ClientOpener racer_opener(const BucketHooks& hooks, const StoreAccess& access,
                                        const BucketConfig& config);

/// Selects the trials of probe_store().
struct ProbeRequest {
  ObjectLock lock{};  ///< If on, the store must lock objects.
  LockProbe locks = LockProbe::kIfWanted;
  /// The folder's last record. The clients race again if a record shows no honoured conditions, or
  /// none shows races of the last 30 days; otherwise one race of one client's threads must do.
  std::optional<bucket::ProbeRecord> before{};
  ClientOpener open_client{};  ///< Opens the clients of the races; empty: no such races.
};
/// Tries the store's abilities.
/// Errors: kUnsupported as require_locks(); as for probe_abilities() and `open_client`.
[[nodiscard]] Result<bucket::ProbeRecord> probe_store(bucket::Bucket& bucket,
                                                      const base::Clock& clock,
                                                      const ProbeRequest& request);

/// Notes in the folder's record that the store let two writers create one head.
void note_ignored_conditions(ReplicaState& state);
/// Logs a warning if the folder's record says that the store does not honour conditional requests:
/// another writer could replace the head that `bucket` has just acknowledged.
void warn_of_unsafe_conditions(const bucket::Bucket& bucket, const ReplicaState& state);

/// Removes objects that trials left more than a day ago because the key could not remove objects.
/// Locked objects stay. Errors: as for the bucket.
[[nodiscard]] Result<void> remove_old_probes(bucket::Bucket& bucket, std::int64_t now_s);

/// Reads and replaces the folder's record of the last probe.
[[nodiscard]] Result<std::optional<bucket::ProbeRecord>> probe_record(const ReplicaState& state);
[[nodiscard]] Result<void> set_probe_record(ReplicaState& state, const bucket::ProbeRecord& record);

/// The objects of the newest head whose locks a check looks at.
struct LockCheck {
  std::int64_t period_s = 0;  ///< Length of a lock in seconds.
  std::int64_t now_s = 0;     ///< The present time by the store's clock.
};
/// Asks the store for the lock of each object, with a request per object. Returns the objects whose
/// lock is missing, or ends within a quarter of the lock's length. Errors: as for the store.
[[nodiscard]] Result<std::vector<StoreDamage>> weak_locks(bucket::Bucket& bucket,
                                                          const std::vector<std::string>& objects,
                                                          const LockCheck& check);

/// Returns `error`; or advice, if `error` reports a store without a head of the folder's
/// repository, and the store has another repository or none: the place was used again.
[[nodiscard]] Error explain_lack(bucket::Bucket& bucket, const std::string& folder,
                                 const Error& error, const std::string& repository_id);

}  // namespace varve::remote
