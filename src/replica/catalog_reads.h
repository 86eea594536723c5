// SPDX-License-Identifier: Apache-2.0
// Reads many objects of a head at once.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bucket/bucket.h"
#include "replica/changes.h"
#include "replica/head.h"
#include "varve/result.h"

namespace varve::replica {

/// Reads the used bytes of extents, all at once. Errors: kCorrupt if an object is shorter, or,
/// where a whole object is used, for other bytes than its checksum says, if it has one; those of
/// the bucket.
[[nodiscard]] Result<std::vector<std::string>> read_extents(bucket::Bucket& bucket,
                                                            const std::vector<Extent>& extents);

/// Reads objects that a head names, as read_catalog_object() reads each, all at once.
[[nodiscard]] Result<std::vector<std::string>> read_catalog_objects(
    bucket::Bucket& bucket, std::span<const CatalogObject> objects);

}  // namespace varve::replica
