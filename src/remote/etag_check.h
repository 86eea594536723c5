// SPDX-License-Identifier: Apache-2.0
// Finds replaced objects by their ETags. docs/decisions/166.
#pragma once

#include "bucket/bucket.h"
#include "remote/check_store_data.h"
#include "remote/etag_notes.h"
#include "remote/needed_objects.h"
#include "remote/replica_state.h"
#include "varve/replication.h"
#include "varve/result.h"

namespace varve::remote {

/// Reads the needed objects whose listed ETag differs from the noted ETag, and adds the objects
/// with wrong bytes to the damages of `check`. A store may change the ETag of a sound object, for
/// example after a migration. Returns the ETags to note: ETags of objects without a note, and new
/// ETags of objects with the right bytes. `read`: the objects already read for `check`.
/// Errors: errors of the bucket and of the state.
[[nodiscard]] Result<Etags> compare_etags(bucket::Bucket& bucket, const ReplicaState& state,
                                          const ListedObjects& listed, ObjectsToRead read,
                                          StoreCheck& check);

}  // namespace varve::remote
