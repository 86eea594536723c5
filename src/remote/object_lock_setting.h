// SPDX-License-Identifier: Apache-2.0
// The lock of a repository's objects: the setting in the catalog, and the store's ability.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "bucket/bucket.h"
#include "crypto/key_ring.h"
#include "io/file_system.h"
#include "meta/lmdb.h"
#include "varve/object_lock.h"
#include "varve/result.h"

namespace varve::remote {

/// Returns the lock setting of a repository's catalog.
[[nodiscard]] Result<ObjectLock> object_lock_of(const meta::Env& catalog);

/// Tries whether the store locks objects; does nothing if the lock is off.
/// Errors: kInvalid for a wrong length; kUnsupported with advice if the bucket has no locks, or the
/// key may not set locks; passing errors of the bucket.
[[nodiscard]] Result<void> require_locks(bucket::Bucket& bucket, const ObjectLock& lock,
                                         const base::Clock& clock);

/// Sets the lock in the catalog of a folder whose creation is not complete. `keys` is null for a
/// plain repository.
[[nodiscard]] Result<void> put_first_lock(std::unique_ptr<io::FileSystem> files,
                                          const std::string& folder,
                                          std::shared_ptr<const crypto::KeyRing> keys,
                                          const ObjectLock& lock);

}  // namespace varve::remote
