// SPDX-License-Identifier: Apache-2.0
// Reads the objects of a repository in an object store.
#pragma once

#include <cstdint>

#include "bucket/bucket.h"
#include "replica/replica_state.h"
#include "varve/replication.h"

namespace varve::repo {

enum class ObjectsToRead : std::uint8_t {
  kAll,
  kSmall,  ///< Those of the catalog, and files that are neither segments nor volumes.
};
/// Reads objects of the newest head that the state knows, and compares them with their checksums.
/// Adds damages and the numbers of what it read to `check`. Reads as many at once as have 32 MiB,
/// and holds those or one longer object.
/// Errors: those of the state; kUnavailable if the store does not answer.
[[nodiscard]] Result<void> read_objects(bucket::Bucket& bucket, const replica::ReplicaState& state,
                                        ObjectsToRead which, StoreCheck& check);

}  // namespace varve::repo
