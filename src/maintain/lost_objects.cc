// SPDX-License-Identifier: Apache-2.0
#include "maintain/lost_objects.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/coding.h"
#include "catalog/series_catalog.h"
#include "catalog/version_origin.h"
#include "maintain/manifest_file.h"
#include "maintain/tree_chunks.h"
#include "meta/schema.h"
#include "store/repository_paths.h"

namespace varve::maintain {

using format::ManifestRecord;

namespace {

/// The ids of objects that a manifest may have.
struct WantedObjects {
  std::set<std::uint64_t> pages;
  std::set<std::uint64_t> recipes;
};

meta::TableIndex table_of(const BrokenObject& object) {
  return object.is_recipe ? meta::catalog::kRecipes : meta::catalog::kNodes;
}

// Removes the manifest's objects from `wanted`. A manifest without a readable header has no
// objects.
Result<void> take_present(io::FileSystem& files, const format::FrameCodec& codec,
                          const std::string& path, WantedObjects& wanted) {
  const auto visit = [&](ManifestRecord what, std::string_view key,
                         std::string_view) -> Result<void> {
    if (key.size() != sizeof(std::uint64_t)) return {};
    if (what == ManifestRecord::kNode) wanted.pages.erase(base::load_be64(key));
    if (what == ManifestRecord::kRecipe) wanted.recipes.erase(base::load_be64(key));
    return {};
  };
  const auto read = read_manifest(files, codec, path, visit);
  VARVE_TRY(refuse_unsupported(read));
  return {};
}

}  // namespace

Result<std::vector<BrokenObject>> find_lost_objects(io::FileSystem& files,
                                                    const format::FrameCodec& codec,
                                                    const std::string& repository_path,
                                                    const meta::Env& catalog,
                                                    std::vector<BrokenObject> broken) {
  std::map<std::pair<SeriesId, VersionNumber>, WantedObjects> by_manifest;
  const auto manifest_of = [](const BrokenObject& object) {
    return std::pair(object.series, static_cast<VersionNumber>(object.id.value >> 32));
  };
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
    for (const auto& object : broken) {
      VARVE_TRY_ASSIGN(const auto value,
                       txn.get(table_of(object), meta::object_key(object.series, object.id.value)));
      if (value) continue;
      auto& wanted = by_manifest[manifest_of(object)];
      (object.is_recipe ? wanted.recipes : wanted.pages).insert(object.id.value);
    }
  }
  const store::RepositoryPaths paths(repository_path);
  for (auto& [of, wanted] : by_manifest) {
    VARVE_TRY(take_present(files, codec, manifest_path(paths.series(of.first), of.second), wanted));
  }
  std::erase_if(broken, [&](const BrokenObject& object) {
    const auto its = by_manifest.find(manifest_of(object));
    if (its == by_manifest.end()) return true;
    const auto& left = object.is_recipe ? its->second.recipes : its->second.pages;
    return !left.contains(object.id.value);
  });
  return broken;
}

std::string describe_lost_object(const Damage& damage) {
  constexpr std::size_t kNamed = 5;
  std::string names;
  for (std::size_t i = 0; i < std::min(kNamed, damage.affected.size()); ++i) {
    names += (i == 0 ? "" : ", ") + damage.affected[i];
  }
  if (damage.affected.size() > kNamed) {
    names += fmt::format(" and {} more", damage.affected.size() - kNamed);
  }
  return fmt::format(
      "{}: lost, because no manifest has it either ({}); all else of the version can be restored, "
      "and `varve rm` deletes the version",
      names.empty() ? damage.where : names, damage.what);
}

Result<void> mark_lost_trees(const meta::Env& catalog) {
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog));
  VARVE_TRY_ASSIGN(const auto all, catalog::list_series(txn));
  for (const auto& series : all) {
    VARVE_TRY_ASSIGN(const auto records, catalog::list_versions(txn, series.id));
    for (auto record : records) {
      if (record.state != VersionState::kSealed) continue;
      bool whole = true;
      static_cast<void>(tree_chunks(catalog, series.id, record.root, whole));
      if (whole) continue;
      catalog::mark_incomplete(record.root.xattrs, record.number);
      VARVE_TRY(catalog::put_version(txn, record));
    }
  }
  return txn.commit();
}

}  // namespace varve::maintain
