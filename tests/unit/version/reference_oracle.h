// SPDX-License-Identifier: Apache-2.0
// Counts the references of the newest version by a walk of its whole tree, for comparison with what
// a seal took from the changes alone.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "catalog/chunk_references.h"
#include "catalog/dir_tree.h"
#include "catalog/object_store.h"
#include "catalog/series_catalog.h"
#include "meta/lmdb.h"
#include "meta/schema.h"
#include "support/temp_repository.h"
#include "varve/backup.h"

namespace varve::test {

/// Number of references by chunk id.
using References = std::map<std::uint64_t, std::int64_t>;

/// Compares the record, the set of chunks and the table of references of the newest sealed version.
/// No other code may have the catalog open.
inline void expect_exact_references(const std::string& repository, SeriesId series) {
  meta::EnvOptions options;
  options.tables = meta::catalog::kTables;
  const auto env = must(meta::Env::open(repository + "/catalog", options));
  const auto txn = must(meta::ReadTxn::begin(env));
  auto versions = must(catalog::list_versions(txn, series));
  std::erase_if(versions, [](const auto& one) { return one.state != VersionState::kSealed; });
  ASSERT_FALSE(versions.empty());
  const auto& newest = versions.back();
  catalog::ObjectReader objects(env, series);
  catalog::TreeWalker walker(objects, newest.root);
  References counted;
  std::set<std::uint64_t> groups;
  std::uint64_t logical_bytes = 0;
  while (const auto found = must(walker.next())) {
    const auto& entry = *found->entry;
    if (!S_ISREG(entry.mode)) continue;
    if (entry.link_group != 0 && !groups.insert(entry.link_group).second) continue;
    logical_bytes += entry.data_bytes;
    const auto recipe =
        entry.recipe ? *entry.recipe : *must(objects.recipe(entry.recipe_id, entry.size));
    for (const auto& run : recipe.runs) {
      if (run.is_hole()) continue;
      for (std::uint32_t i = 0; i < run.count; ++i) ++counted[run.first.plus(i).value];
    }
  }
  EXPECT_EQ(newest.logical_bytes, logical_bytes);
  References known;
  const auto chunks = must(catalog::version_chunks(txn, series, newest.number));
  for (const auto& run : chunks.runs()) {
    for (std::uint32_t i = 0; i < run.count; ++i) known[run.first.plus(i).value] = 1;
  }
  EXPECT_TRUE(catalog::has_references(txn, series, newest.number));
  for (const auto& piece : must(catalog::stored_references(txn, series))) {
    for (auto id = piece.first; id != piece.end; ++id) {
      EXPECT_TRUE(known.contains(id));
      known[id] = piece.references;
    }
  }
  EXPECT_TRUE(known == counted) << known.size() << " chunks, not " << counted.size();
}

}  // namespace varve::test
