// SPDX-License-Identifier: Apache-2.0
// Finds the directory pages and recipes of trees, to delete the objects of deleted versions only.
#pragma once

#include <cstdint>
#include <set>
#include <unordered_set>
#include <vector>

#include "catalog/object_store.h"
#include "meta/lmdb.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::catalog {

struct ObjectSet {
  std::unordered_set<std::uint64_t> pages;
  std::unordered_set<std::uint64_t> recipes;
};

/// Adds the objects of the tree below `root` (a top page) to `found`. Skips objects already in
/// `found` or `except`, with everything below; the result is complete because objects are
/// immutable. Likewise skips objects born in `before` or earlier, which refer to no newer object.
/// Memory: about 16 bytes per object. After an error, `found` keeps the objects found so far.
[[nodiscard]] Result<void> collect_objects(ObjectReader& objects, format::NodeId root,
                                           const ObjectSet& except, ObjectSet& found,
                                           VersionNumber before = {});

/// A sealed version's tree, for find_dead_objects().
struct VersionTree {
  VersionNumber number{};
  format::NodeId root{};  ///< Top page.
  bool goes = false;      ///< The version is to be deleted.
};

/// Adds the objects that die with the deleted versions to `dead`. `trees` has all sealed versions
/// of the series, in ascending number.
///
/// Reads only the deleted trees, and the next tree after each group of deleted trees. Of each tree,
/// reads only pages born after the version before the group: the cost follows the changes between
/// the versions on both sides. Without a version before the group, reads two whole trees.
/// Errors: kCorrupt for damage in a tree read. Then nothing may be erased.
[[nodiscard]] Result<void> find_dead_objects(ObjectReader& objects,
                                             const std::vector<VersionTree>& trees,
                                             ObjectSet& dead);

/// Returns the versions of `births` that first stored an object in use by the tree below `root`.
/// Skips pages older than all versions not found yet, because a page refers to no newer object.
/// Ends when all versions are found.
[[nodiscard]] Result<std::set<VersionNumber>> referred_births(
    ObjectReader& objects, format::NodeId root, const std::set<VersionNumber>& births);

[[nodiscard]] Result<void> erase_objects(meta::WriteTxn& txn, SeriesId series,
                                         const ObjectSet& objects);

}  // namespace varve::catalog
