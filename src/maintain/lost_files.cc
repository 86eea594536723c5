// SPDX-License-Identifier: Apache-2.0
#include "maintain/lost_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace varve::maintain {

namespace {

bool has_type(const format::DirEntry& entry, std::uint32_t type) {
  return (entry.mode & S_IFMT) == type;
}

Result<bool> is_lost(catalog::ObjectReader& objects, const format::DirEntry& entry,
                     const base::IdRuns& lost) {
  bool found = false;
  const auto scan = [&](const format::RecipeRun& run) {
    found = found || (!run.is_hole() && lost.overlaps({run.first, run.count}));
  };
  if (entry.recipe) {
    std::ranges::for_each(entry.recipe->runs, scan);
  } else {
    VARVE_TRY(objects.for_each_run(entry.recipe_id, entry.size, scan));
  }
  return found;
}

/// An unread page, with the path of the page's directory.
struct Waiting {
  format::NodeId page{};
  std::uint64_t span = 0;
  std::string path;
};

}  // namespace

Result<LostFiles> find_lost_files(catalog::ObjectReader& objects,
                                  const catalog::VersionRecord& version, const base::IdRuns& lost) {
  LostFiles found;
  std::vector<Waiting> waiting{{version.root.child, version.root.subtree_entries, {}}};
  while (!waiting.empty()) {
    const auto here = std::move(waiting.back());
    waiting.pop_back();
    VARVE_TRY_ASSIGN(const auto page, objects.page(here.page, here.span));
    std::vector<Waiting> below;  // In the order of the tree.
    if (const auto* inner = std::get_if<format::InnerPage>(page.get())) {
      for (const auto& ref : inner->refs) {
        below.push_back({ref.page, ref.subtree_entries, here.path});
      }
    } else {
      for (const auto& entry : std::get<format::LeafPage>(*page).entries) {
        const auto path = here.path + entry.name;
        if (has_type(entry, S_IFDIR))
          below.push_back({entry.child, entry.subtree_entries, path + "/"});
        if (!has_type(entry, S_IFREG)) continue;
        VARVE_TRY_ASSIGN(const bool affected, is_lost(objects, entry, lost));
        if (!affected) continue;
        ++found.files;
        if (found.names.size() < kLostFilesNamed) found.names.push_back(path);
      }
    }
    waiting.insert(waiting.end(), below.rbegin(), below.rend());
  }
  return found;
}

}  // namespace varve::maintain
