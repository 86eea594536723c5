// SPDX-License-Identifier: Apache-2.0
// Which directory pages and recipes trees consist of: to know what goes with a deleted version.
#pragma once

#include <cstdint>
#include <unordered_set>

#include "catalog/object_store.h"
#include "meta/lmdb.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::catalog {

struct ObjectSet {
  std::unordered_set<std::uint64_t> pages;
  std::unordered_set<std::uint64_t> recipes;
};

/// Adds the objects of the tree below `root` (a top page) to `found`. What is in `found` or in
/// `except` already is not entered: objects are immutable, so neither is anything below it.
/// Takes 16 bytes or so an object. An error leaves what was found before it.
[[nodiscard]] Result<void> collect_objects(ObjectReader& objects, format::NodeId root,
                                           const ObjectSet& except, ObjectSet& found);

/// Whether the tree below `root` refers to an object that version `birth` was the first to store.
/// Enters only pages that may: what an older version stored refers to nothing newer.
[[nodiscard]] Result<bool> refers_to_birth(ObjectReader& objects, format::NodeId root,
                                           VersionNumber birth);

[[nodiscard]] Result<void> erase_objects(meta::WriteTxn& txn, SeriesId series,
                                         const ObjectSet& objects);

}  // namespace varve::catalog
