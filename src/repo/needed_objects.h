// SPDX-License-Identifier: Apache-2.0
// The objects that the newest state of a folder needs, compared with those of its object store.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "bucket/abilities.h"
#include "bucket/bucket.h"
#include "io/file_system.h"
#include "replica/replica_state.h"
#include "varve/replication.h"
#include "varve/result.h"

namespace varve::repo {

/// The objects of the newest head that a folder knows.
struct NeededObjects {
  std::string repository_id{};
  std::string head{};                              ///< Its name; empty before the first one.
  std::string head_text{};                         ///< Its bytes.
  std::map<std::string, std::uint64_t> objects{};  ///< Lengths by name.
  std::set<std::string> others{};                  ///< Objects that may exist, and need not.
  std::uint64_t lock_days = 0;                     ///< Days for which objects are locked.
  std::optional<bucket::ProbeRecord> probed{};     ///< What the store did before.
};

/// Reads them in a folder. `state` is that of the folder, if it has one.
[[nodiscard]] Result<NeededObjects> needed_objects(
    io::FileSystem& files, const std::string& folder,
    const std::optional<replica::ReplicaState>& state);

/// Adds to `check` what a list of the store shows: numbers, objects that are missing, and objects
/// of another length. Errors: those of the bucket.
[[nodiscard]] Result<void> compare_list(bucket::Bucket& bucket, const NeededObjects& needed,
                                        std::int64_t now_s, StoreCheck& check);
/// Reads the newest head and `varve.repo`, which have no checksum elsewhere, and adds what is wrong
/// with them to `check`. Errors: those of the bucket.
[[nodiscard]] Result<void> compare_outer_objects(bucket::Bucket& bucket,
                                                 const NeededObjects& needed, StoreCheck& check);

}  // namespace varve::repo
