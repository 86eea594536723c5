// SPDX-License-Identifier: Apache-2.0
#include "catalog/link_table.h"

#include <algorithm>
#include <limits>

#include "base/coding.h"
#include "catalog/dir_tree.h"

namespace varve::catalog {

namespace {

// Limit on the names gathered by collect(): a page with many references yields all names once per
// reference. Takes 2 GiB.
constexpr std::size_t kCollectedMax = std::size_t{1} << 26;
constexpr std::uint64_t kGroupEnd = std::uint64_t{1} << 62;

Error damaged_links() {
  return {ErrorCode::kCorrupt, "catalog: a version's record of hard links is damaged"};
}

}  // namespace

LinkTable LinkTable::from(std::vector<Entry> entries) {
  LinkTable table;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.group != b.group ? a.group < b.group : a.rank < b.rank;
  });
  table.names_.reserve(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const bool starts = i == 0 || entries[i].group != entries[i - 1].group;
    if (starts) table.files_.push_back({entries[i].rank, entries[i].group});
    table.names_.push_back({entries[i].rank, table.files_.back().first});
  }
  std::sort(table.names_.begin(), table.names_.end(),
            [](const Name& a, const Name& b) { return a.rank < b.rank; });
  std::sort(table.files_.begin(), table.files_.end(),
            [](const File& a, const File& b) { return a.first < b.first; });
  return table;
}

Result<LinkTable> LinkTable::collect(ObjectReader& objects, const format::DirEntry& root) {
  std::vector<Entry> entries;
  TreeWalker walker(objects, root);
  while (true) {
    VARVE_TRY_ASSIGN(const auto found, walker.next());
    if (!found) return from(std::move(entries));
    if (found->entry->link_group == 0) continue;
    if (entries.size() == kCollectedMax) {
      return Error(ErrorCode::kCorrupt, "a version has more hard links than can be collected");
    }
    entries.push_back({static_cast<std::uint32_t>(found->rank), found->entry->link_group});
  }
}

std::span<const LinkTable::Name> LinkTable::names_in(Rank from, std::uint64_t count) const {
  const auto before = [](const Name& name, Rank wanted) { return name.rank < wanted; };
  const auto first = std::lower_bound(names_.begin(), names_.end(), from, before);
  const auto last = std::lower_bound(first, names_.end(), from + count, before);
  return {first, last};
}

Rank LinkTable::first_of(Rank rank) const {
  const auto found = names_in(rank, 1);
  return found.empty() ? rank : found.front().first;
}

std::uint64_t LinkTable::group_of(Rank first) const {
  const auto it =
      std::lower_bound(files_.begin(), files_.end(), first,
                       [](const File& file, Rank wanted) { return file.first < wanted; });
  return it != files_.end() && it->first == first ? it->group : 0;
}

std::vector<std::uint64_t> LinkTable::groups() const {
  std::vector<std::uint64_t> all;
  all.reserve(files_.size());
  for (const auto& file : files_) all.push_back(file.group);
  std::sort(all.begin(), all.end());
  return all;
}

void LinkTable::encode(std::string& out) const {
  base::ByteWriter w(out);
  w.varint(names_.size());
  std::uint32_t last = 0;
  for (const auto& name : names_) {
    w.varint(name.rank - last);
    w.varint(name.rank - name.first);
    if (name.rank == name.first) w.varint(group_of(name.first));
    last = name.rank;
  }
}

Result<LinkTable> LinkTable::decode(std::string_view bytes) {
  base::ByteReader r(bytes);
  LinkTable table;
  const std::uint64_t count = r.varint();
  if (count > r.left()) return damaged_links();
  table.names_.reserve(count);
  std::uint64_t rank = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t gap = r.varint();
    const std::uint64_t back = r.varint();
    if (!r.ok() || gap == 0 || gap > std::numeric_limits<std::uint32_t>::max() - rank ||
        back >= rank + gap) {
      return damaged_links();
    }
    rank += gap;
    const auto first = static_cast<std::uint32_t>(rank - back);
    if (back == 0) {
      const std::uint64_t group = r.varint();
      if (group == 0 || group >= kGroupEnd) return damaged_links();
      table.files_.push_back({first, group});
    } else if (table.group_of(first) == 0) {
      return damaged_links();
    }
    table.names_.push_back({static_cast<std::uint32_t>(rank), first});
  }
  auto groups = table.groups();
  if (!r.done() || std::adjacent_find(groups.begin(), groups.end()) != groups.end()) {
    return damaged_links();
  }
  return table;
}

}  // namespace varve::catalog
