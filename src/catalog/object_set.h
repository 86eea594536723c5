// SPDX-License-Identifier: Apache-2.0
// Finds the directory pages and recipes of trees, to delete those that only a deleted version uses.
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

/// Adds the objects of the tree below `root` (a top page) to `found`. Skips objects that are
/// already in `found` or `except`, with everything below them; that is complete because objects are
/// immutable. Skips objects born in `before` or earlier, likewise: they refer to no newer object.
/// Memory: about 16 bytes per object. After an error, `found` keeps the objects found so
/// far.
[[nodiscard]] Result<void> collect_objects(ObjectReader& objects, format::NodeId root,
                                           const ObjectSet& except, ObjectSet& found,
                                           VersionNumber before = {});

/// A sealed version's tree, for find_dead_objects().
struct VersionTree {
  VersionNumber number{};
  format::NodeId root{};  ///< Top page.
  bool goes = false;      ///< The version is to be deleted.
};

/// Adds the objects that die with the versions that go to `dead`. `trees` has all sealed versions
/// of the series, in ascending number.
///
/// Reads only the trees that go, and the next tree after each group of them, and of these only
/// pages born after the version before the group: the cost follows the changes between the versions
/// on both sides. Without a version before, it reads two whole trees.
/// Errors: kCorrupt for damage in one of these trees. Then nothing may be erased.
[[nodiscard]] Result<void> find_dead_objects(ObjectReader& objects,
                                             const std::vector<VersionTree>& trees,
                                             ObjectSet& dead);

/// Returns the versions of `births` that stored an object first to which the tree below `root`
/// refers. Skips pages of versions older than those not found yet, because a page refers to no
/// newer object. Ends when it has found all.
[[nodiscard]] Result<std::set<VersionNumber>> referred_births(
    ObjectReader& objects, format::NodeId root, const std::set<VersionNumber>& births);

[[nodiscard]] Result<void> erase_objects(meta::WriteTxn& txn, SeriesId series,
                                         const ObjectSet& objects);

}  // namespace varve::catalog
