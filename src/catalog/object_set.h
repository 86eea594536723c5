// SPDX-License-Identifier: Apache-2.0
// Finds the directory pages and recipes of trees, to delete those that only a deleted version uses.
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

/// Adds the objects of the tree below `root` (a top page) to `found`. Skips objects that are
/// already in `found` or `except`, with everything below them; that is complete because objects are
/// immutable. Memory: about 16 bytes per object. After an error, `found` keeps the objects found so
/// far.
[[nodiscard]] Result<void> collect_objects(ObjectReader& objects, format::NodeId root,
                                           const ObjectSet& except, ObjectSet& found);

/// Returns whether the tree below `root` refers to an object that version `birth` stored first.
/// Skips pages of older versions, because these refer to no newer object.
[[nodiscard]] Result<bool> refers_to_birth(ObjectReader& objects, format::NodeId root,
                                           VersionNumber birth);

[[nodiscard]] Result<void> erase_objects(meta::WriteTxn& txn, SeriesId series,
                                         const ObjectSet& objects);

}  // namespace varve::catalog
