// SPDX-License-Identifier: Apache-2.0
#include "maintain/missing_files.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <variant>

#include "base/coding.h"
#include "maintain/manifest_file.h"
#include "maintain/owners.h"
#include "meta/schema.h"
#include "meta/stored_records.h"

namespace varve::maintain {
namespace {

using Numbers = std::map<SeriesId, std::set<std::uint32_t>>;

/// Returns the second numbers of a table's keys by the first numbers.
Result<Numbers> numbers_in(const meta::Env& catalog, const char* table) {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
  VARVE_TRY_ASSIGN(auto cursor, meta::StoredCursor::open(txn, table));
  Numbers found;
  while (true) {
    VARVE_TRY_ASSIGN(const auto record, cursor.next());
    if (!record) return found;
    if (record->key.size() != 8) continue;  // A check of the values reports the key.
    found[SeriesId{base::load_be32(record->key)}].insert(base::load_be32(record->key.substr(4)));
  }
}

Result<void> find_missing_containers(io::FileSystem& files, const store::StoreOpener& open_store,
                                     const store::RepositoryPaths& paths, const Numbers& named,
                                     std::set<std::string>& missing) {
  for (const auto& [owner, segments] : named) {  // The pool's store has the number 0, too.
    const auto store = store::open_store(open_store, files, owner_folder(paths, owner));
    std::set<std::uint32_t> present;
    for (const auto kind : {store::StoredKind::kSegments, store::StoredKind::kVolumes}) {
      VARVE_TRY_ASSIGN(const auto names, store->list(kind));
      for (const auto& name : names) {
        present.insert(static_cast<std::uint32_t>(std::get<SegmentNumber>(name)));
      }
    }
    for (const auto segment : segments) {
      if (!present.contains(segment)) missing.insert(store->describe(SegmentNumber{segment}));
    }
  }
  return {};
}

// Each sealed version has a record of retention, and no open version has.
Result<void> find_missing_manifests(io::FileSystem& files, const store::RepositoryPaths& paths,
                                    const Numbers& sealed, bool encrypted,
                                    std::set<std::string>& missing) {
  for (const auto& [series, versions] : sealed) {
    if (versions.empty()) continue;
    const auto directory = paths.series(series);
    const auto labels = directory + "/" + kLabelsName;
    VARVE_TRY_ASSIGN(const bool labelled, files.exists(labels));
    VARVE_TRY_ASSIGN(const auto manifests, list_manifests(files, directory));
    if (!encrypted && !labelled && manifests.empty()) continue;
    if (!labelled) missing.insert(labels);
    std::set<std::uint32_t> present;
    for (const auto& file : manifests) present.insert(static_cast<std::uint32_t>(file.number));
    for (const auto version : versions) {
      if (!present.contains(version)) {
        missing.insert(manifest_path(directory, VersionNumber{version}));
      }
    }
  }
  return {};
}

Result<std::set<std::string>> look(io::FileSystem& files, const store::StoreOpener& open_store,
                                   const store::RepositoryPaths& paths, const meta::Env& catalog,
                                   bool encrypted) {
  const auto& tables = meta::catalog::kTables;
  std::set<std::string> missing;
  VARVE_TRY_ASSIGN(const auto segments, numbers_in(catalog, tables[meta::catalog::kSegments]));
  VARVE_TRY(find_missing_containers(files, open_store, paths, segments, missing));
  VARVE_TRY_ASSIGN(auto sealed, numbers_in(catalog, tables[meta::catalog::kRetention]));
  VARVE_TRY_ASSIGN(auto versions, numbers_in(catalog, tables[meta::catalog::kVersions]));
  for (auto& [series, numbers] : sealed) {
    std::erase_if(
        numbers, [&, of = series](std::uint32_t number) { return !versions[of].contains(number); });
  }
  VARVE_TRY(find_missing_manifests(files, paths, sealed, encrypted, missing));
  return missing;
}

}  // namespace

// A writer first commits without the names of removed files, and then removes the files. A file is
// missing only if two passes find the name in the catalog but no file.
Result<std::vector<std::string>> find_missing_files(io::FileSystem& files,
                                                    const store::StoreOpener& open_store,
                                                    const store::RepositoryPaths& paths,
                                                    const meta::Env& catalog, bool encrypted) {
  VARVE_TRY_ASSIGN(const auto first, look(files, open_store, paths, catalog, encrypted));
  if (first.empty()) return std::vector<std::string>();
  VARVE_TRY_ASSIGN(const auto second, look(files, open_store, paths, catalog, encrypted));
  std::vector<std::string> missing;
  std::ranges::set_intersection(first, second, std::back_inserter(missing));
  return missing;
}

}  // namespace varve::maintain
