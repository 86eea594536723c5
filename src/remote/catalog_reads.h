// SPDX-License-Identifier: Apache-2.0
// Reads many objects of a head at once.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bucket/bucket.h"
#include "remote/changes.h"
#include "remote/head.h"
#include "varve/result.h"

namespace varve::remote {

/// The contents of objects, or the error of each unreadable object.
using ObjectTexts = std::vector<Result<std::string>>;

/// Returns whether a store answered without the object's bytes: the object is missing, or has other
/// bytes than were uploaded. Errors of the network and of the key are no loss.
[[nodiscard]] bool is_loss(const Error& error);

/// Reads the used bytes of all extents concurrently. Errors: kCorrupt if an object is shorter than
/// its extent, or if a wholly used object with a checksum has other bytes; errors of the bucket.
[[nodiscard]] Result<std::vector<std::string>> read_extents(bucket::Bucket& bucket,
                                                            const std::vector<Extent>& extents);

/// Reads all given objects of a head concurrently, each as read_catalog_object() does.
[[nodiscard]] Result<std::vector<std::string>> read_catalog_objects(
    bucket::Bucket& bucket, std::span<const CatalogObject> objects);

/// Reads the given objects of a head concurrently. Of a lost object, reads the copy, and logs the
/// loss once for all objects of the call. Returns the error of the object without a whole copy.
[[nodiscard]] ObjectTexts read_catalog_or_copies(bucket::Bucket& bucket,
                                                 std::span<const CatalogObject> objects);
/// Reads the given objects as read_catalog_or_copies() does. Errors: the first error.
[[nodiscard]] Result<std::vector<std::string>> read_all_or_copies(
    bucket::Bucket& bucket, std::span<const CatalogObject> objects);
/// Reads the extents of small files as read_catalog_or_copies() does.
[[nodiscard]] ObjectTexts read_extents_or_copies(bucket::Bucket& bucket,
                                                 const std::vector<Extent>& extents);

}  // namespace varve::remote
