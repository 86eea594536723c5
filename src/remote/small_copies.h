// SPDX-License-Identifier: Apache-2.0
// The second copies of small objects: heads, catalog objects, and files except segments, volumes
// and parity. docs/decisions/157.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "bucket/bucket.h"
#include "remote/changes.h"
#include "remote/head.h"
#include "remote/replica_state.h"
#include "remote/uploads.h"
#include "varve/result.h"

namespace varve::remote {

/// A small object that a head needs.
struct SmallObject {
  std::string name{};
  std::string path{};  ///< The file of the object; kWholeCatalog for a catalog object.
  std::uint64_t bytes = 0;
  /// Reads the object from the store, and verifies the bytes.
  std::function<Result<std::string>(bucket::Bucket& bucket)> read{};
};
/// Returns the small objects of a head, without the head itself.
[[nodiscard]] std::vector<SmallObject> small_objects(const Head& head, const ObjectMap& map);

/// Returns whether all small objects of the newest head have copies.
[[nodiscard]] Result<bool> has_all_copies(const ReplicaState& state);
/// Notes that all small objects of the head `number` have copies; for 0, that some may lack one.
[[nodiscard]] Result<void> note_copies(ReplicaState& state, std::uint64_t number);

/// Writes the copy of an object, over a damaged copy too. Errors: errors of the bucket.
[[nodiscard]] Result<void> write_copy(bucket::Bucket& bucket, const std::string& name,
                                      std::span<const std::byte> bytes);
/// Begins to write the copies that the store lacks: a store of an earlier release has none. Skips
/// damaged objects with a warning, and leaves damaged copies to a repair. Errors: errors of the
/// bucket.
/// Lifetime: `bucket` outlives the requests in `uploads`.
[[nodiscard]] Result<void> add_missing_copies(bucket::Bucket& bucket, Uploads& uploads,
                                              const std::string& repository_id,
                                              const std::vector<SmallObject>& objects);

}  // namespace varve::remote
