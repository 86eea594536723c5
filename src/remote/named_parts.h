// SPDX-License-Identifier: Apache-2.0
// The parts of labels named by catalog objects. docs/decisions/170.
#pragma once

#include <string>
#include <vector>

#include "bucket/bucket.h"
#include "crypto/key_ring.h"
#include "remote/label_parts.h"
#include "varve/result.h"

namespace varve::remote {

/// A part of labels named by a catalog object.
struct LabelEvidence {
  LabelPart part{};
  std::string object{};
};

/// Returns the parts of labels named by the newest catalog objects and missing in the store.
/// `catalog` and `others`: the listed catalog objects and small files, with copies. `keys` are null
/// in a plain repository. Holds one catalog object in memory. Errors: errors of the bucket.
[[nodiscard]] Result<std::vector<LabelEvidence>> missing_parts(
    bucket::Bucket& bucket, const std::vector<bucket::ObjectInfo>& catalog,
    const std::vector<bucket::ObjectInfo>& others, const crypto::KeyRing* keys);

}  // namespace varve::remote
