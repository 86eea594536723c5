// SPDX-License-Identifier: Apache-2.0
#include "catalog/dir_tree.h"

#include <sys/stat.h>

#include <algorithm>

namespace varve::catalog {

namespace {

bool is_directory(const format::DirEntry& entry) { return (entry.mode & S_IFMT) == S_IFDIR; }

std::uint64_t span_of(const format::DirEntry& entry) { return 1 + entry.subtree_entries; }

// A directory of 2^32 entries has fewer than ten levels of pages, even with names chosen to end
// many pages.
constexpr std::size_t kInnerPagesMax = 64;

Result<void> check_level(std::size_t level) {
  if (level <= kInnerPagesMax) return {};
  return Error(ErrorCode::kCorrupt, "a directory has too many levels of pages");
}

Error not_found(const char* what) { return {ErrorCode::kNotFound, what}; }

/// Returns the page of an entry below the root, with the page's place in the tree.
PageCache::PlacedLeaf leaf_of(const TreeEntry& found) {
  PageCache::PlacedLeaf leaf;
  leaf.page = found.page;
  leaf.first = leaf.end = found.rank;
  leaf.directory = found.parent;
  bool is_before = true;
  for (const auto& entry : std::get<format::LeafPage>(*found.page).entries) {
    is_before = is_before && &entry != found.entry;
    if (is_before) {
      leaf.first -= span_of(entry);
    } else {
      leaf.end += span_of(entry);
    }
  }
  return leaf;
}

/// Returns the leaf's own entry with `rank`; nullopt for a rank below the leaf's entries.
std::optional<TreeEntry> entry_in(PageCache::PlacedLeaf leaf, Rank rank) {
  const auto& entries = std::get<format::LeafPage>(*leaf.page).entries;
  std::size_t index = 0;
  Rank at = leaf.first;
  if (leaf.end - leaf.first == entries.size()) {  // All entries are without subtrees.
    index = rank - leaf.first;
    at = rank;
  }
  while (index < entries.size() && at < rank) at += span_of(entries[index++]);
  if (index == entries.size() || at != rank) return std::nullopt;
  return TreeEntry{std::move(leaf.page), &entries[index], rank, leaf.directory};
}

}  // namespace

TreeWalker::TreeWalker(ObjectReader& objects, const format::DirEntry& root)
    : objects_(objects), root_(root) {}

Result<void> TreeWalker::push(format::NodeId id, std::uint64_t span, Rank next_rank, Rank directory,
                              std::size_t level) {
  if (stack_.size() >= kDepthMax || level > kInnerPagesMax) {
    return Error(ErrorCode::kCorrupt, "a version's tree is too deep");
  }
  VARVE_TRY_ASSIGN(auto page, objects_.page(id, span));
  // A page far above is read again when the walk returns to the page.
  if (stack_.size() >= kPagesHeld) stack_[stack_.size() - kPagesHeld].page.reset();
  stack_.push_back({id, std::move(page), 0, next_rank, directory, level});
  return {};
}

Result<void> TreeWalker::hold_top() {
  Frame& top = stack_.back();
  if (top.page) return {};
  VARVE_TRY_ASSIGN(top.page, objects_.page(top.id));
  return {};
}

Result<void> TreeWalker::seek(Rank rank) {
  stack_.clear();
  at_root_ = rank == 0;
  if (at_root_) return {};
  VARVE_TRY(push(root_.child, root_.subtree_entries, 1, 0, 0));
  while (true) {
    Frame& top = stack_.back();
    if (const auto* leaf = std::get_if<format::LeafPage>(top.page.get())) {
      const auto& entries = leaf->entries;
      while (top.index < entries.size() && top.next_rank + span_of(entries[top.index]) <= rank) {
        top.next_rank += span_of(entries[top.index++]);
      }
      if (top.index == entries.size() || top.next_rank >= rank) return {};
      const auto& entry = entries[top.index++];
      const Rank own = top.next_rank;
      top.next_rank += span_of(entry);
      VARVE_TRY(push(entry.child, entry.subtree_entries, own + 1, own, 0));
    } else {
      const auto& refs = std::get<format::InnerPage>(*top.page).refs;
      while (top.index < refs.size() && top.next_rank + refs[top.index].subtree_entries <= rank) {
        top.next_rank += refs[top.index++].subtree_entries;
      }
      if (top.index == refs.size()) return {};
      const auto& ref = refs[top.index++];
      const Rank first = top.next_rank;
      top.next_rank += ref.subtree_entries;
      VARVE_TRY(push(ref.page, ref.subtree_entries, first, top.directory, top.level + 1));
    }
  }
}

Result<std::optional<TreeEntry>> TreeWalker::next() {
  if (at_root_) {
    at_root_ = false;
    VARVE_TRY(push(root_.child, root_.subtree_entries, 1, 0, 0));
    return std::optional(TreeEntry{nullptr, &root_, 0, 0});
  }
  while (!stack_.empty()) {
    VARVE_TRY(hold_top());
    Frame& top = stack_.back();
    if (const auto* leaf = std::get_if<format::LeafPage>(top.page.get())) {
      if (top.index == leaf->entries.size()) {
        stack_.pop_back();
        continue;
      }
      const auto& entry = leaf->entries[top.index++];
      TreeEntry found{top.page, &entry, top.next_rank, top.directory};
      top.next_rank += span_of(entry);
      if (is_directory(entry)) {
        VARVE_TRY(push(entry.child, entry.subtree_entries, found.rank + 1, found.rank, 0));
      }
      return std::optional(std::move(found));
    }
    const auto& refs = std::get<format::InnerPage>(*top.page).refs;
    if (top.index == refs.size()) {
      stack_.pop_back();
      continue;
    }
    const auto& ref = refs[top.index++];
    const Rank first = top.next_rank;
    top.next_rank += ref.subtree_entries;
    VARVE_TRY(push(ref.page, ref.subtree_entries, first, top.directory, top.level + 1));
  }
  return std::optional<TreeEntry>();
}

// Programs ask for the same entry several times, and then for the next entry of the directory.
Result<TreeEntry> DirTree::get(Rank rank) const {
  if (rank == 0) return TreeEntry{nullptr, &root_, 0, 0};
  if (auto leaf = objects_.leaf_with(root_.child, rank)) {
    if (auto found = entry_in(std::move(*leaf), rank)) return std::move(*found);
  }
  TreeWalker walker(objects_, root_);
  VARVE_TRY(walker.seek(rank));
  VARVE_TRY_ASSIGN(auto found, walker.next());
  if (!found || found->rank != rank) return not_found("the version has no such entry");
  objects_.keep_leaf(root_.child, leaf_of(*found));
  return std::move(*found);
}

Result<TreeEntry> DirTree::lookup(const TreeEntry& directory, std::string_view name) const {
  if (!is_directory(*directory.entry)) {
    return Error(ErrorCode::kNotDirectory, "not a directory");
  }
  VARVE_TRY_ASSIGN(auto page, objects_.page(directory.entry->child));
  Rank rank = directory.rank + 1;
  std::size_t level = 0;
  while (const auto* inner = std::get_if<format::InnerPage>(page.get())) {
    VARVE_TRY(check_level(++level));
    const auto& refs = inner->refs;
    const auto after = std::upper_bound(refs.begin(), refs.end(), name,
                                        [](std::string_view wanted, const format::PageRef& ref) {
                                          return wanted < ref.first_name;
                                        });
    if (after == refs.begin()) return not_found("no such name");
    for (auto it = refs.begin(); it != std::prev(after); ++it) rank += it->subtree_entries;
    const auto& ref = *std::prev(after);
    VARVE_TRY_ASSIGN(page, objects_.page(ref.page, ref.subtree_entries));
  }
  const auto& entries = std::get<format::LeafPage>(*page).entries;
  const auto it = std::lower_bound(
      entries.begin(), entries.end(), name,
      [](const format::DirEntry& entry, std::string_view wanted) { return entry.name < wanted; });
  if (it == entries.end() || it->name != name) return not_found("no such name");
  for (auto before = entries.begin(); before != it; ++before) rank += span_of(*before);
  return TreeEntry{page, &*it, rank, directory.rank};
}

Result<void> DirTree::list(const TreeEntry& directory, Rank after,
                           const std::function<bool(const TreeEntry&)>& visit) const {
  struct Frame {
    std::shared_ptr<const format::DirPage> page;
    std::size_t index = 0;
    Rank rank = 0;
  };
  std::vector<Frame> stack;
  VARVE_TRY_ASSIGN(auto top_page,
                   objects_.page(directory.entry->child, directory.entry->subtree_entries));
  stack.push_back({std::move(top_page), 0, directory.rank + 1});
  while (!stack.empty()) {
    Frame& top = stack.back();
    if (const auto* leaf = std::get_if<format::LeafPage>(top.page.get())) {
      for (const auto& entry : leaf->entries) {
        if (top.rank > after && !visit({top.page, &entry, top.rank, directory.rank})) return {};
        top.rank += span_of(entry);
      }
      stack.pop_back();
      continue;
    }
    const auto& refs = std::get<format::InnerPage>(*top.page).refs;
    if (top.index == refs.size()) {
      stack.pop_back();
      continue;
    }
    const auto& ref = refs[top.index++];
    const Rank first = top.rank;
    top.rank += ref.subtree_entries;
    if (top.rank <= after) continue;  // The whole page was listed before.
    VARVE_TRY(check_level(stack.size()));
    VARVE_TRY_ASSIGN(auto page, objects_.page(ref.page, ref.subtree_entries));
    stack.push_back({std::move(page), 0, first});
  }
  return {};
}

Result<void> DirCursor::seek(std::string_view after) {
  stack_.clear();
  VARVE_TRY_ASSIGN(auto page, objects_.page(page_));
  stack_.push_back({std::move(page), 0, directory_ + 1});
  while (const auto* inner = std::get_if<format::InnerPage>(stack_.back().page.get())) {
    // The last page that starts at or before the name may hold the names after it.
    Frame& top = stack_.back();
    const auto& refs = inner->refs;
    while (top.index + 1 < refs.size() && refs[top.index + 1].first_name <= after) {
      top.next_rank += refs[top.index++].subtree_entries;
    }
    const auto& ref = refs[top.index++];
    const Rank first = top.next_rank;
    top.next_rank += ref.subtree_entries;
    VARVE_TRY(check_level(stack_.size()));
    VARVE_TRY_ASSIGN(auto below, objects_.page(ref.page, ref.subtree_entries));
    stack_.push_back({std::move(below), 0, first});
  }
  if (after.empty()) return {};
  Frame& leaf = stack_.back();
  const auto& entries = std::get<format::LeafPage>(*leaf.page).entries;
  while (leaf.index < entries.size() && entries[leaf.index].name <= after) {
    leaf.next_rank += span_of(entries[leaf.index++]);
  }
  return {};
}

Result<std::optional<TreeEntry>> DirCursor::next() {
  while (!stack_.empty()) {
    Frame& top = stack_.back();
    if (const auto* leaf = std::get_if<format::LeafPage>(top.page.get())) {
      if (top.index < leaf->entries.size()) {
        const auto& entry = leaf->entries[top.index++];
        TreeEntry found{top.page, &entry, top.next_rank, directory_};
        top.next_rank += span_of(entry);
        return std::optional(std::move(found));
      }
    } else if (const auto& refs = std::get<format::InnerPage>(*top.page).refs;
               top.index < refs.size()) {
      const auto& ref = refs[top.index++];
      const Rank first = top.next_rank;
      top.next_rank += ref.subtree_entries;
      VARVE_TRY(check_level(stack_.size()));
      VARVE_TRY_ASSIGN(auto below, objects_.page(ref.page, ref.subtree_entries));
      stack_.push_back({std::move(below), 0, first});
      continue;
    }
    stack_.pop_back();
  }
  return std::optional<TreeEntry>();
}

Result<std::uint64_t> count_names(ObjectReader& objects, format::NodeId page) {
  VARVE_TRY_ASSIGN(const auto top, objects.page(page));
  if (const auto* leaf = std::get_if<format::LeafPage>(top.get())) return leaf->entries.size();
  std::uint64_t names = 0;
  for (const auto& ref : std::get<format::InnerPage>(*top).refs) names += ref.entries;
  return names;
}

Result<void> DirBuilder::add(format::DirEntry entry) {
  const std::size_t bytes = entry.name.size() + entry.symlink_target.size() + 64 +
                            (entry.recipe ? entry.recipe->runs.size() * 12 : 0) + [&] {
                              std::size_t n = 0;
                              for (const auto& xattr : entry.xattrs)
                                n += xattr.name.size() + xattr.value.size() + 4;
                              return n;
                            }();
  if (!leaf_.entries.empty() &&
      (format::is_page_boundary(entry.name, 0) || leaf_bytes_ + bytes > kPageBytesMax)) {
    VARVE_TRY(close_leaf());
  }
  leaf_bytes_ += bytes;
  built_.subtree_entries += span_of(entry);
  built_.subdirectories += is_directory(entry) ? 1 : 0;
  leaf_.entries.push_back(std::move(entry));
  return {};
}

Result<void> DirBuilder::close_leaf() {
  format::PageRef ref;
  ref.first_name = leaf_.entries.empty() ? "" : leaf_.entries.front().name;
  ref.entries = static_cast<std::uint32_t>(leaf_.entries.size());
  for (const auto& entry : leaf_.entries) ref.subtree_entries += span_of(entry);
  VARVE_TRY_ASSIGN(ref.page, objects_.put_page(std::exchange(leaf_, {}), previous_));
  leaf_bytes_ = 0;
  return add_ref(1, std::move(ref));
}

Result<void> DirBuilder::add_ref(std::size_t level, format::PageRef ref) {
  if (levels_.size() < level) levels_.resize(level);
  const std::size_t bytes = ref.first_name.size() + 16;
  {
    const Level& here = levels_[level - 1];
    if (!here.page.refs.empty() &&
        (format::is_page_boundary(ref.first_name, static_cast<unsigned>(level)) ||
         here.bytes + bytes > kPageBytesMax)) {
      VARVE_TRY(close_inner(level));
    }
  }
  levels_[level - 1].bytes += bytes;
  levels_[level - 1].page.refs.push_back(std::move(ref));
  return {};
}

Result<void> DirBuilder::close_inner(std::size_t level) {
  const Level closed = std::exchange(levels_[level - 1], {});
  format::PageRef ref;
  ref.first_name = closed.page.refs.front().first_name;
  for (const auto& below : closed.page.refs) {
    ref.entries += below.entries;
    ref.subtree_entries += below.subtree_entries;
  }
  VARVE_TRY_ASSIGN(ref.page, objects_.put_page(closed.page, previous_));
  return add_ref(level + 1, std::move(ref));
}

Result<DirBuilder::Built> DirBuilder::finish() {
  if (levels_.empty() || !leaf_.entries.empty()) VARVE_TRY(close_leaf());
  // The highest level that holds a single reference, with nothing above it, is the root.
  for (std::size_t level = 1;; ++level) {
    const bool top = level == levels_.size();
    if (top && levels_[level - 1].page.refs.size() == 1) {
      built_.root = levels_[level - 1].page.refs.front().page;
      return built_;
    }
    if (!levels_[level - 1].page.refs.empty()) VARVE_TRY(close_inner(level));
  }
}

}  // namespace varve::catalog
