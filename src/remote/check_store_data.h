// SPDX-License-Identifier: Apache-2.0
// Reads the objects of a repository in an object store.
#pragma once

#include <cstdint>
#include <string>

#include "bucket/bucket.h"
#include "remote/needed_objects.h"
#include "remote/replica_state.h"
#include "varve/replication.h"

namespace varve::remote {

enum class ObjectsToRead : std::uint8_t {
  kAll,
  kSmall,   ///< Catalog objects, and files except segments and volumes.
  kCopied,  ///< Objects that have copies: kSmall without parity, which is not small.
};
/// Adds the loss of a newer head, or of a newer head's catalog objects, to `check`. An attached
/// folder stays at an older head then. Errors: as for reading the state; errors of the bucket.
[[nodiscard]] Result<void> check_newer_head(bucket::Bucket& bucket,
                                            const std::string& repository_id,
                                            const ReplicaState& state, StoreCheck& check);

/// Reads objects of the newest head in the state, the listed copies, and, for each value of
/// `which`, the damaged objects named by the last check, and verifies the checksums.
/// Adds damages and the numbers of read objects and bytes to `check`. Reads up to 32 MiB of objects
/// at once, or one longer object, and holds the read objects in memory. Errors: as for reading the
/// state; kUnavailable if the store does not answer.
[[nodiscard]] Result<void> read_objects(bucket::Bucket& bucket, const ReplicaState& state,
                                        ObjectsToRead which, const ListedObjects& listed,
                                        StoreCheck& check);

}  // namespace varve::remote
