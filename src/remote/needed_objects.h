// SPDX-License-Identifier: Apache-2.0
// The objects needed by the newest state of a folder, compared with the objects in the store.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "bucket/abilities.h"
#include "bucket/bucket.h"
#include "io/file_system.h"
#include "remote/etag_notes.h"
#include "remote/replica_state.h"
#include "varve/replication.h"
#include "varve/result.h"

namespace varve::remote {

/// The objects of the folder's newest known head.
struct NeededObjects {
  std::string repository_id{};
  std::string head{};                              ///< The head's name; empty before the first.
  std::string head_text{};                         ///< The head's bytes.
  std::map<std::string, std::uint64_t> objects{};  ///< Lengths by name.
  std::map<std::string, std::uint64_t> copies{};   ///< Lengths of the small objects' copies.
  /// Copies that only a head with all copies has: the copies of the head and of its last change.
  std::set<std::string> last_copies{};
  bool has_copies = false;                      ///< The folder has written all copies.
  std::set<std::string> others{};               ///< Optional objects.
  std::set<std::string> damaged{};              ///< Named as damaged by the last check.
  bool is_attached = false;                     ///< The folder only reads.
  Etags etags{};                                ///< Noted ETags of objects without copies.
  bool has_etags = true;                        ///< The store's lists show the ETags of uploads.
  std::uint64_t lock_days = 0;                  ///< Days for which objects are locked.
  std::optional<bucket::ProbeRecord> probed{};  ///< The result of the last probe.
};

/// Reads the needed objects from a folder. `state`: the folder's replica state, if any.
[[nodiscard]] Result<NeededObjects> needed_objects(io::FileSystem& files, const std::string& folder,
                                                   const std::optional<ReplicaState>& state);

/// The needed objects in a list of the store.
struct ListedObjects {
  std::set<std::string> copies{};   ///< Listed copies of needed objects.
  std::set<std::string> damaged{};  ///< As NeededObjects::damaged.
  Etags new_etags{};                ///< ETags of objects without a noted ETag.
  Etags changed_etags{};            ///< Other ETags than noted, of objects with the right length.
};
/// Adds the findings of a list of the store to `check`: numbers, missing objects, and objects of a
/// wrong length. A copy counts as missing only if the store once had all copies: a store of an
/// earlier release has none. Errors: as for the bucket.
[[nodiscard]] Result<ListedObjects> compare_list(bucket::Bucket& bucket,
                                                 const NeededObjects& needed, std::int64_t now_s,
                                                 StoreCheck& check);
/// Reads the newest head with its copy and `varve.repo`, whose checksums are stored nowhere else,
/// and adds the faults to `check`. Errors: as for the bucket.
[[nodiscard]] Result<void> compare_outer_objects(bucket::Bucket& bucket,
                                                 const NeededObjects& needed,
                                                 const ListedObjects& listed, StoreCheck& check);

}  // namespace varve::remote
