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

/// Reads the used bytes of all extents concurrently. Errors: kCorrupt if an object is shorter than
/// its extent, or if a wholly used object with a checksum has other bytes; errors of the bucket.
[[nodiscard]] Result<std::vector<std::string>> read_extents(bucket::Bucket& bucket,
                                                            const std::vector<Extent>& extents);

/// Reads all given objects of a head concurrently, each as read_catalog_object() does.
[[nodiscard]] Result<std::vector<std::string>> read_catalog_objects(
    bucket::Bucket& bucket, std::span<const CatalogObject> objects);

}  // namespace varve::remote
