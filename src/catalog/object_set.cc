// SPDX-License-Identifier: Apache-2.0
#include "catalog/object_set.h"

#include <sys/stat.h>

#include <variant>
#include <vector>

#include "meta/schema.h"

namespace varve::catalog {

Result<void> collect_objects(ObjectReader& objects, format::NodeId root, const ObjectSet& except,
                             ObjectSet& found) {
  std::vector<format::NodeId> waiting;
  const auto add_page = [&](format::NodeId id) {
    if (!except.pages.contains(id.value) && found.pages.insert(id.value).second) {
      waiting.push_back(id);
    }
  };
  add_page(root);
  while (!waiting.empty()) {
    const auto id = waiting.back();
    waiting.pop_back();
    VARVE_TRY_ASSIGN(const auto page, objects.page(id));
    if (const auto* inner = std::get_if<format::InnerPage>(page.get())) {
      for (const auto& ref : inner->refs) add_page(ref.page);
      continue;
    }
    for (const auto& entry : std::get<format::LeafPage>(*page).entries) {
      const auto type = entry.mode & S_IFMT;
      if (type == S_IFDIR) add_page(entry.child);
      if (type == S_IFREG && !entry.recipe && !except.recipes.contains(entry.recipe_id.value)) {
        found.recipes.insert(entry.recipe_id.value);
      }
    }
  }
  return {};
}

Result<bool> refers_to_birth(ObjectReader& objects, format::NodeId root, VersionNumber birth) {
  const auto born = [](std::uint64_t id) { return static_cast<VersionNumber>(id >> 32); };
  std::unordered_set<std::uint64_t> seen;
  std::vector<format::NodeId> waiting;
  const auto add_page = [&](format::NodeId id) {
    if (born(id.value) >= birth && seen.insert(id.value).second) waiting.push_back(id);
  };
  add_page(root);
  while (!waiting.empty()) {
    const auto id = waiting.back();
    waiting.pop_back();
    if (born(id.value) == birth) return true;
    VARVE_TRY_ASSIGN(const auto page, objects.page(id));
    if (const auto* inner = std::get_if<format::InnerPage>(page.get())) {
      for (const auto& ref : inner->refs) add_page(ref.page);
      continue;
    }
    for (const auto& entry : std::get<format::LeafPage>(*page).entries) {
      const auto type = entry.mode & S_IFMT;
      if (type == S_IFDIR) add_page(entry.child);
      if (type == S_IFREG && !entry.recipe && born(entry.recipe_id.value) == birth) return true;
    }
  }
  return false;
}

Result<void> erase_objects(meta::WriteTxn& txn, SeriesId series, const ObjectSet& objects) {
  for (const auto id : objects.pages) {
    VARVE_TRY(txn.erase(meta::catalog::kNodes, meta::object_key(series, id)));
  }
  for (const auto id : objects.recipes) {
    VARVE_TRY(txn.erase(meta::catalog::kRecipes, meta::object_key(series, id)));
  }
  return {};
}

}  // namespace varve::catalog
