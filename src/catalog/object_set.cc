// SPDX-License-Identifier: Apache-2.0
#include "catalog/object_set.h"

#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <variant>
#include <vector>

#include "meta/schema.h"

namespace varve::catalog {

namespace {

VersionNumber birth_of(format::NodeId id) { return static_cast<VersionNumber>(id.value >> 32); }

}  // namespace

Result<void> collect_objects(ObjectReader& objects, format::NodeId root, const ObjectSet& except,
                             ObjectSet& found, VersionNumber before) {
  std::vector<format::NodeId> waiting;
  const auto add_page = [&](format::NodeId id) {
    if (birth_of(id) <= before) return;
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
      if (type != S_IFREG || entry.recipe || birth_of(entry.recipe_id) <= before) continue;
      if (except.recipes.contains(entry.recipe_id.value)) continue;
      found.recipes.insert(entry.recipe_id.value);
    }
  }
  return {};
}

// A version shares objects only with the version that was the newest at the seal. So an object
// shared by two versions is in every existing version between the two. Consequences:
//   - An object of a deleted tree is in the version before the group if the object was born by
//     then, and otherwise in no version before.
//   - If a later version has the object, the next version after the group has the object too.
Result<void> find_dead_objects(ObjectReader& objects, const std::vector<VersionTree>& trees,
                               ObjectSet& dead) {
  VersionNumber before{};
  for (std::size_t i = 0; i < trees.size(); ++i) {
    if (!trees[i].goes) {
      before = trees[i].number;
      continue;
    }
    std::size_t next = i;
    while (next < trees.size() && trees[next].goes) ++next;
    ObjectSet live;
    if (next < trees.size()) {
      VARVE_TRY(collect_objects(objects, trees[next].root, {}, live, before));
    }
    for (; i < next; ++i) VARVE_TRY(collect_objects(objects, trees[i].root, live, dead, before));
    --i;
  }
  return {};
}

Result<std::set<VersionNumber>> referred_births(ObjectReader& objects, format::NodeId root,
                                                const std::set<VersionNumber>& births) {
  std::set<VersionNumber> left = births;
  std::unordered_set<std::uint64_t> seen;
  std::vector<format::NodeId> waiting;
  const auto add_page = [&](format::NodeId id) {
    if (left.empty() || birth_of(id) < *left.begin() || !seen.insert(id.value).second) return;
    left.erase(birth_of(id));
    waiting.push_back(id);
  };
  add_page(root);
  while (!left.empty() && !waiting.empty()) {
    const auto id = waiting.back();
    waiting.pop_back();
    if (birth_of(id) < *left.begin()) continue;
    VARVE_TRY_ASSIGN(const auto page, objects.page(id));
    if (const auto* inner = std::get_if<format::InnerPage>(page.get())) {
      for (const auto& ref : inner->refs) add_page(ref.page);
      continue;
    }
    for (const auto& entry : std::get<format::LeafPage>(*page).entries) {
      const auto type = entry.mode & S_IFMT;
      if (type == S_IFDIR) add_page(entry.child);
      if (type == S_IFREG && !entry.recipe) left.erase(birth_of(entry.recipe_id));
    }
  }
  std::set<VersionNumber> found;
  std::set_difference(births.begin(), births.end(), left.begin(), left.end(),
                      std::inserter(found, found.end()));
  return found;
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
