// SPDX-License-Identifier: Apache-2.0
// Compares the catalog and the small files that the newest head gives with those of the folder.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include "base/coding.h"
#include "meta/schema.h"
#include "meta/stored_records.h"
#include "remote/changes.h"
#include "remote/head.h"
#include "world.h"

namespace varve::test {

/// Records by table and key.
using StoredRecords = std::map<std::pair<std::uint8_t, std::string>, std::string>;

/// Returns the newest head of the store.
inline remote::Head newest_head(World& world) {
  remote::Head newest;
  for (const auto& name : world.heads()) {
    auto head = must(remote::decode_head(base::as_text(world.objects().objects.at(name).bytes)));
    if (head.number > newest.number) newest = std::move(head);
  }
  return newest;
}

/// Returns all records that a head's catalog objects make, those of the map included.
inline StoredRecords records_of_head(World& world, const remote::Head& head) {
  StoredRecords records;
  for (const auto& object : head.catalog) {
    const auto& bytes = world.objects().objects.at("p/" + object.name).bytes;
    must(remote::for_each_change(base::as_text(bytes),
                                 [&](const remote::Change& change) -> Result<void> {
                                   const std::pair key(change.table, std::string(change.key));
                                   if (change.value) {
                                     records[key] = *change.value;
                                   } else {
                                     records.erase(key);
                                   }
                                   return {};
                                 }));
  }
  return records;
}

/// Returns the records of the folder's catalog, and the number of its last commit.
inline StoredRecords records_here(const std::string& folder, std::uint64_t& commit) {
  meta::EnvOptions options;
  options.tables = meta::catalog::kTables;
  options.optional_tables = meta::catalog::kTablesOptional;
  options.read_only = true;
  options.must_exist = true;
  options.without_keys = true;
  const auto catalog = must(meta::Env::open(folder + "/catalog", options));
  const auto txn = must(meta::ReadTxn::begin(catalog));
  commit = txn.id();
  StoredRecords records;
  const auto& tables = remote::catalog_tables();
  for (std::uint8_t table = 0; table < tables.size(); ++table) {
    auto cursor = must(meta::StoredCursor::open(txn, tables[table]));
    for (auto one = must(cursor.next()); one; one = must(cursor.next())) {
      records[{table, std::string(one->key)}] = one->value;
    }
  }
  return records;
}

/// Checks that the store has the folder's catalog, record for record, and its small files, byte for
/// byte. Everything must be replicated, and no process may have the repository open.
inline void expect_store_has_catalog(World& world) {
  const auto head = newest_head(world);
  auto stored = records_of_head(world, head);
  std::map<std::string, std::string> files;  // Small ones, by path.
  for (auto at = stored.lower_bound({remote::kObjectsTable, ""}); at != stored.end(); ++at) {
    const auto record = must(remote::decode_extent(at->first.second, at->second));
    if (record.extent.mark == 0) continue;
    auto& file = files[record.path];
    if (record.extent.object.empty()) continue;
    const auto& bytes = world.objects().objects.at("p/" + record.extent.object).bytes;
    file += base::as_text(bytes).substr(record.extent.lead.size(), record.extent.bytes);
  }
  stored.erase(stored.lower_bound({remote::kObjectsTable, ""}), stored.end());
  std::uint64_t commit = 0;
  const auto here = records_here(world.path(), commit);
  EXPECT_EQ(head.commit, commit) << world.where();
  EXPECT_TRUE(stored == here) << "the store has " << stored.size() << " records, the folder "
                              << here.size() << world.where();
  std::map<std::string, std::string> files_here;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(world.path())) {
    const auto path = entry.path().lexically_relative(world.path()).string();
    const auto ending = entry.path().extension();
    const auto name = entry.path().filename();
    const bool is_small = ending == ".man" || ending == ".par" || ending == ".als" ||
                          name == "labels" || name == "beside";
    if (!is_small || path.starts_with("replica/")) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    files_here[path] = {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  EXPECT_TRUE(files == files_here) << world.where();
}

}  // namespace varve::test
