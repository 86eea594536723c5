// SPDX-License-Identifier: Apache-2.0
// The objects of a store that no other object vouches for: the newest head and `varve.repo`.
#pragma once

#include <string>

#include "bucket/bucket.h"
#include "remote/needed_objects.h"
#include "varve/result.h"

namespace varve::remote {

/// Puts `varve.repo` back, with the text of a folder's superblock. Overwrites a present object only
/// if the object is no superblock. Errors: kLocked for a superblock that another machine has
/// written; errors of the bucket.
[[nodiscard]] Result<void> put_superblock_back(bucket::Bucket& bucket, const std::string& text);

/// Puts the newest head of a folder back byte for byte. The copy of the head must follow.
/// Overwrites a present object only if the object is no head with the number: no writer can have
/// made such an object. O60. Errors: kLocked if the store has a later head, or another head of the
/// number; errors of the bucket.
[[nodiscard]] Result<void> put_head_back(bucket::Bucket& bucket, const NeededObjects& needed);

}  // namespace varve::remote
