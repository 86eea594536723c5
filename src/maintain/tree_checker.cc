// SPDX-License-Identifier: Apache-2.0
#include "maintain/tree_checker.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "catalog/link_table.h"

namespace varve::maintain {

namespace {

constexpr std::size_t kAffectedNamed = 1000;  // Limit of files listed for one damage.
// Limit on the pages in a walk for names: a forged tree may have damage in 2^32 places.
constexpr std::size_t kPagesWalked = std::size_t{1} << 22;

bool is_type(const format::DirEntry& entry, std::uint32_t type) {
  return (entry.mode & S_IFMT) == type;
}

bool overlaps(const base::IdRuns& ids, const format::RecipeRun& run) {
  return !run.is_hole() && ids.overlaps({run.first, run.count});
}

}  // namespace

// An entry, or an unreadable page (with a null entry).
struct TreeChecker::Place {
  const format::DirEntry* entry = nullptr;
  format::NodeId page{};
  Rank rank = 0;
  const std::string& path;
};

TreeChecker::TreeChecker(const meta::Env& catalog, const catalog::SeriesRecord& series,
                         std::string catalog_path, const std::vector<DamagedChunks>& damaged,
                         CheckReport& report)
    : catalog_(catalog),
      series_(series),
      catalog_path_(std::move(catalog_path)),
      damaged_(damaged),
      report_(report),
      objects_(catalog, series.id) {
  std::vector<base::IdRun> runs;
  for (const auto& one : damaged) {
    runs.insert(runs.end(), one.ids.runs().begin(), one.ids.runs().end());
  }
  all_damaged_ = base::IdRuns::from(std::move(runs));
}

std::size_t TreeChecker::damage(std::string what) {
  report_.damages.push_back({catalog_path_, std::move(what), {}});
  return report_.damages.size() - 1;
}

void TreeChecker::affect(std::size_t report_index, std::string name) {
  auto& affected = report_.damages[report_index].affected;
  if (affected.size() < kAffectedNamed) affected.push_back(std::move(name));
}

bool TreeChecker::is_damaged(const format::DirEntry& entry) {
  bool damaged = false;
  const auto scan = [&](const format::RecipeRun& run) {
    damaged = damaged || overlaps(all_damaged_, run);
  };
  if (entry.recipe) {
    std::ranges::for_each(entry.recipe->runs, scan);
    return damaged;
  }
  const auto id = entry.recipe_id;
  if (broken_recipes_.contains(id.value)) return true;
  if (recipes_.contains(id.value)) return false;
  if (const auto looked = objects_.for_each_run(id, entry.size, scan); !looked) {
    broken_recipes_[id.value] = damage(looked.error().message());
    return true;
  }
  if (!damaged) recipes_.insert(id.value);
  return damaged;
}

// Finds the facts of all pages below a root. Children have lower ids than their parents, so
// ascending order visits the children first.
void TreeChecker::learn(format::NodeId root) {
  if (facts_.contains(root.value)) return;
  std::unordered_set<std::uint64_t> seen{root.value};
  std::vector<format::NodeId> waiting{root};
  std::vector<format::NodeId> found;
  const auto add = [&](format::NodeId id) {
    if (!facts_.contains(id.value) && seen.insert(id.value).second) waiting.push_back(id);
  };
  while (!waiting.empty()) {
    const auto id = waiting.back();
    waiting.pop_back();
    found.push_back(id);
    const auto page = objects_.page(id);
    if (!page) continue;
    if (const auto* inner = std::get_if<format::InnerPage>(page->get())) {
      for (const auto& ref : inner->refs) add(ref.page);
      continue;
    }
    for (const auto& entry : std::get<format::LeafPage>(**page).entries) {
      if (is_type(entry, S_IFDIR)) add(entry.child);
    }
  }
  std::sort(found.begin(), found.end());
  for (const auto id : found) facts_[id.value] = facts_of(id);
}

TreeChecker::PageFacts TreeChecker::facts_of(format::NodeId id) {
  PageFacts facts;
  const auto page = objects_.page(id);
  if (!page) {
    broken_pages_[id.value] = damage(page.error().message());
    facts.touched = facts.broken = true;
    return facts;
  }
  facts.span = format::span_of_page(**page);
  if (const auto* inner = std::get_if<format::InnerPage>(page->get())) {
    for (const auto& ref : inner->refs) add_child(ref.page, ref.subtree_entries, facts);
    return facts;
  }
  for (const auto& entry : std::get<format::LeafPage>(**page).entries) {
    if (entry.link_group != 0) ++facts.linked;
    if (is_type(entry, S_IFDIR)) add_child(entry.child, entry.subtree_entries, facts);
    if (is_type(entry, S_IFREG) && is_damaged(entry)) facts.touched = true;
  }
  return facts;
}

void TreeChecker::add_child(format::NodeId id, std::uint64_t span, PageFacts& facts) {
  const auto below = facts_.find(id.value);
  if (below == facts_.end()) return;  // Cannot happen: children have lower ids.
  facts.linked += below->second.linked;
  facts.touched = facts.touched || below->second.touched;
  facts.broken = facts.broken || below->second.broken;
  if (below->second.span == span || broken_pages_.contains(id.value)) return;
  broken_pages_[id.value] = damage(objects_.page(id, span).error().message());
  facts.touched = facts.broken = true;
}

void TreeChecker::walk(const catalog::VersionRecord& version,
                       const std::function<bool(const PageFacts&)>& wanted, const Visit& visit) {
  struct Frame {
    format::NodeId id{};
    std::size_t index = 0;
    Rank next_rank = 0;
    // Path length of the directory; whole paths would need too much memory.
    std::size_t path_bytes = 0;
  };
  std::string path = series_.name + "/" + version.name;
  std::vector<Frame> stack;
  std::size_t pages = 0;
  const auto enter = [&](format::NodeId id, Rank rank, std::size_t path_bytes) {
    path.resize(path_bytes);
    if (broken_pages_.contains(id.value)) return visit({nullptr, id, rank, path});
    const auto facts = facts_.find(id.value);
    if (facts == facts_.end() || !wanted(facts->second)) return true;
    stack.push_back({id, 0, rank, path_bytes});
    return ++pages < kPagesWalked;
  };
  if (!enter(version.root.child, 1, path.size())) return;
  while (!stack.empty()) {
    Frame& top = stack.back();
    const auto page = objects_.page(top.id);
    if (!page) return;
    const Rank rank = top.next_rank;
    if (const auto* inner = std::get_if<format::InnerPage>(page->get())) {
      if (top.index == inner->refs.size()) {
        stack.pop_back();
        continue;
      }
      const auto& ref = inner->refs[top.index++];
      top.next_rank += ref.subtree_entries;
      if (!enter(ref.page, rank, top.path_bytes)) return;
      continue;
    }
    const auto& entries = std::get<format::LeafPage>(**page).entries;
    if (top.index == entries.size()) {
      stack.pop_back();
      continue;
    }
    const auto& entry = entries[top.index++];
    top.next_rank += 1 + entry.subtree_entries;
    path.resize(top.path_bytes);
    path.append("/").append(entry.name);
    if (!visit({&entry, {}, rank, path})) return;
    if (is_type(entry, S_IFDIR) && !enter(entry.child, rank + 1, path.size())) return;
  }
}

void TreeChecker::name_damages(const format::DirEntry& entry, const std::string& path) {
  std::vector<bool> is_hit(damaged_.size());
  const auto scan = [&](const format::RecipeRun& run) {
    if (!overlaps(all_damaged_, run)) return;
    for (std::size_t i = 0; i < damaged_.size(); ++i) {
      is_hit[i] = is_hit[i] || overlaps(damaged_[i].ids, run);
    }
  };
  if (entry.recipe) {
    std::ranges::for_each(entry.recipe->runs, scan);
  } else {
    if (const auto broken = broken_recipes_.find(entry.recipe_id.value);
        broken != broken_recipes_.end()) {
      affect(broken->second, path);
      return;
    }
    if (recipes_.contains(entry.recipe_id.value)) return;
    if (!objects_.for_each_run(entry.recipe_id, entry.size, scan)) return;
  }
  for (std::size_t i = 0; i < damaged_.size(); ++i) {
    if (is_hit[i]) affect(damaged_[i].report_index, path);
  }
}

void TreeChecker::name_affected(const catalog::VersionRecord& version) {
  const auto touched = [](const PageFacts& facts) { return facts.touched; };
  walk(version, touched, [&](const Place& place) {
    if (place.entry == nullptr) {
      affect(broken_pages_[place.page.value],
             fmt::format("{}: the tree after entry {}", place.path, place.rank - 1));
    } else if (is_type(*place.entry, S_IFREG)) {
      name_damages(*place.entry, place.path);
    }
    return true;
  });
}

// Compares the record of hard links with the tree. With a wrong record, a clone would join or
// separate files.
void TreeChecker::check_links(const catalog::VersionRecord& version) {
  const auto stored = [&]() -> Result<std::optional<catalog::LinkTable>> {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    return catalog::version_links(txn, version.series, version.number);
  }();
  if (!stored) {
    static_cast<void>(damage(stored.error().message()));
    return;
  }
  if (!*stored) return;
  const auto& names = (*stored)->names();
  bool fits = facts_[version.root.child.value].linked == names.size();
  if (fits && !names.empty()) {
    std::vector<catalog::LinkTable::Entry> found;
    found.reserve(names.size());
    const auto linked = [](const PageFacts& facts) { return facts.linked != 0; };
    walk(version, linked, [&](const Place& place) {
      if (place.entry != nullptr && place.entry->link_group != 0) {
        found.push_back({static_cast<std::uint32_t>(place.rank), place.entry->link_group});
      }
      return true;
    });
    // If the walk reached its limit, only the counts are compared.
    fits = found.size() != names.size() || catalog::LinkTable::from(std::move(found)) == **stored;
  }
  if (fits) return;
  static_cast<void>(damage(version.name + ": the record of hard links does not fit the tree"));
}

std::vector<BrokenObject> TreeChecker::broken() const {
  std::vector<BrokenObject> all;
  for (const auto& [id, index] : broken_pages_) all.push_back({series_.id, {id}, false, index});
  for (const auto& [id, index] : broken_recipes_) all.push_back({series_.id, {id}, true, index});
  return all;
}

void TreeChecker::check(const catalog::VersionRecord& version) {
  const auto root = version.root.child;
  const auto span = version.root.subtree_entries;
  const std::string top = series_.name + "/" + version.name;
  learn(root);
  const auto& facts = facts_[root.value];
  if (!broken_pages_.contains(root.value)) {
    if (facts.span != span || span != version.entries) {
      affect(damage(fmt::format("{} has {} entries instead of {}", top, facts.span,
                                span != version.entries ? version.entries : span)),
             top);
    }
  }
  if (facts.touched) name_affected(version);
  if (!facts.broken) check_links(version);
}

}  // namespace varve::maintain
