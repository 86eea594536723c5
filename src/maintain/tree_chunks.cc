// SPDX-License-Identifier: Apache-2.0
#include "maintain/tree_chunks.h"

#include <sys/stat.h>

#include <algorithm>
#include <unordered_set>
#include <variant>
#include <vector>

#include "catalog/object_store.h"

namespace varve::maintain {

base::IdRuns tree_chunks(const meta::Env& catalog, SeriesId series, const format::DirEntry& root,
                         bool& whole) {
  catalog::ObjectReader objects(catalog, series);
  std::unordered_set<std::uint64_t> seen{root.child.value};
  std::vector<format::NodeId> waiting{root.child};
  std::vector<base::IdRun> runs;
  // Files may share chunks, so the list is compacted when grown.
  std::size_t compact_at = std::size_t{1} << 20;
  const auto add_page = [&](format::NodeId id) {
    if (seen.insert(id.value).second) waiting.push_back(id);
  };
  const auto add_run = [&](const format::RecipeRun& run) {
    if (!run.is_hole()) runs.push_back({run.first, run.count});
    if (runs.size() < compact_at) return;
    runs = base::IdRuns::from(std::move(runs)).runs();
    compact_at = std::max(compact_at, 2 * runs.size());
  };
  while (!waiting.empty()) {
    const auto page = objects.page(waiting.back());
    waiting.pop_back();
    if (!page) {
      whole = false;
      continue;
    }
    if (const auto* inner = std::get_if<format::InnerPage>(page->get())) {
      for (const auto& ref : inner->refs) add_page(ref.page);
      continue;
    }
    for (const auto& entry : std::get<format::LeafPage>(**page).entries) {
      const auto type = entry.mode & S_IFMT;
      if (type == S_IFDIR) add_page(entry.child);
      if (type != S_IFREG) continue;
      if (entry.recipe) {
        for (const auto& run : entry.recipe->runs) add_run(run);
      } else if (!objects.for_each_run(entry.recipe_id, entry.size, add_run)) {
        whole = false;
      }
    }
  }
  return base::IdRuns::from(std::move(runs));
}

}  // namespace varve::maintain
