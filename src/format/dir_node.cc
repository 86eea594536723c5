// SPDX-License-Identifier: Apache-2.0
#include "format/dir_node.h"

#include <sys/stat.h>
#include <xxhash.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/assert.h"
#include "format/dir_entry_codec.h"

namespace varve::format {

namespace {

using base::ByteReader;
using base::ByteWriter;

// Minimum encoded sizes of an entry and of a reference.
constexpr std::size_t kEntryBytesMin = 5;
constexpr std::size_t kRefBytesMin = 2 + 1 + 1 + 2;
// Average number of entries between two boundaries; a power of two.
constexpr std::uint64_t kBoundarySpacing = 32;

// Number of entries for which the decoder reserves memory at once.
constexpr std::uint64_t kEntriesReserved = 1024;

std::size_t memory_of(const DirEntry& entry) {
  std::size_t bytes = sizeof entry + entry.name.capacity() + entry.symlink_target.capacity();
  for (const auto& xattr : entry.xattrs) {
    bytes += sizeof xattr + xattr.name.capacity() + xattr.value.capacity();
  }
  return bytes + (entry.recipe ? entry.recipe->runs.capacity() * sizeof(RecipeRun) : 0);
}

std::size_t memory_of(const PageRef& ref) { return sizeof ref + ref.first_name.capacity(); }

Error damaged_node(const char* what) {
  return {ErrorCode::kCorrupt, std::string("directory node: ") + what};
}

// The order is strict, so a name occurs only once.
bool follows(std::string_view name, std::string_view previous) {
  return is_entry_name(name) && name > previous;
}

// Checks the rule for pages only: a file with several names has a link group, because the names
// lead to the same file only through the group.
bool is_linked_well(const DirEntry& entry) {
  if (entry.nlink == 0) return false;
  return S_ISDIR(entry.mode) ? entry.link_group == 0 : (entry.nlink > 1) == (entry.link_group != 0);
}

void put_leaf(const LeafPage& page, std::string& out) {
  ByteWriter w(out);
  w.u8(static_cast<std::uint8_t>(NodeKind::kLeaf));
  w.varint(page.entries.size());
  EntryContext context;
  for (const auto& entry : page.entries) {
    VARVE_ASSERT(follows(entry.name, context.name));
    VARVE_ASSERT(is_linked_well(entry));
    put_entry(entry, context, out);
  }
}

void put_inner(const InnerPage& page, std::string& out) {
  ByteWriter w(out);
  w.u8(static_cast<std::uint8_t>(NodeKind::kInner));
  w.varint(page.refs.size());
  std::string_view previous;
  NodeId last;
  for (const auto& ref : page.refs) {
    VARVE_ASSERT(follows(ref.first_name, previous));
    VARVE_ASSERT(ref.entries > 0 && ref.subtree_entries >= ref.entries);
    put_name(ref.first_name, previous, out);
    put_node_id(ref.page, last, out);
    w.varint(ref.entries);
    w.varint(ref.subtree_entries - ref.entries);
    previous = ref.first_name;
  }
}

Result<DirPage> get_leaf(ByteReader& r) {
  const std::uint64_t n = r.varint();
  if (n > r.left() / kEntryBytesMin) return damaged_node("its count is impossible");
  LeafPage page;
  page.entries.reserve(std::min(n, kEntriesReserved));
  EntryContext context;
  std::size_t memory = 0;
  std::uint64_t span = 0;
  for (std::uint64_t i = 0; i < n; ++i) {
    std::string previous = context.name;
    page.entries.push_back(get_entry(r, context));
    const DirEntry& entry = page.entries.back();
    if (!r.ok()) return damaged_node("an entry is malformed");
    if (!follows(entry.name, previous))
      return damaged_node("a name is out of order or not allowed");
    if (!is_linked_well(entry)) return damaged_node("an entry's link count and group disagree");
    memory += memory_of(entry);
    span += 1 + entry.subtree_entries;
    if (n > 1 && memory > kDirPageMemoryMax)
      return damaged_node("its entries take too much memory");
    if (span >= kEntriesEnd) return damaged_node("more entries are below it than a version has");
  }
  if (!r.done()) return damaged_node("bytes follow its last entry");
  return DirPage(std::move(page));
}

Result<DirPage> get_inner(ByteReader& r) {
  const std::uint64_t n = r.varint();
  if (n == 0 || n > r.left() / kRefBytesMin) return damaged_node("its count is impossible");
  InnerPage page;
  page.refs.reserve(std::min(n, kEntriesReserved));
  std::string previous;
  NodeId last;
  std::size_t memory = 0;
  std::uint64_t span = 0;
  for (std::uint64_t i = 0; i < n; ++i) {
    PageRef ref;
    ref.first_name = get_name(r, previous);
    ref.page = get_node_id(r, last);
    const std::uint64_t entries = r.varint();
    const std::uint64_t below = r.varint();
    if (!r.ok() || entries == 0 || entries > std::numeric_limits<std::uint32_t>::max() ||
        below >= kEntriesEnd - entries) {
      return damaged_node("a reference is malformed");
    }
    if (!follows(ref.first_name, previous)) {
      return damaged_node("a name is out of order or not allowed");
    }
    ref.entries = static_cast<std::uint32_t>(entries);
    ref.subtree_entries = entries + below;
    previous = ref.first_name;
    memory += memory_of(ref);
    span += ref.subtree_entries;
    if (n > 1 && memory > kDirPageMemoryMax)
      return damaged_node("its references take too much memory");
    if (span >= kEntriesEnd) return damaged_node("more entries are below it than a version has");
    page.refs.push_back(std::move(ref));
  }
  if (!r.done()) return damaged_node("bytes follow its last reference");
  return DirPage(std::move(page));
}

}  // namespace

std::string encode_dir_page(const DirPage& page) {
  std::string out;
  if (const auto* leaf = std::get_if<LeafPage>(&page)) {
    put_leaf(*leaf, out);
  } else {
    put_inner(std::get<InnerPage>(page), out);
  }
  return out;
}

Result<DirPage> decode_dir_page(std::string_view bytes) {
  if (bytes.size() > kDirPageBytesMax) return damaged_node("it is too long");
  ByteReader r(bytes);
  switch (static_cast<NodeKind>(r.u8())) {
    case NodeKind::kLeaf:
      return get_leaf(r);
    case NodeKind::kInner:
      return get_inner(r);
    default:
      return damaged_node("it is not a page");
  }
}

std::uint64_t span_of_page(const DirPage& page) {
  std::uint64_t span = 0;
  if (const auto* leaf = std::get_if<LeafPage>(&page)) {
    for (const auto& entry : leaf->entries) span += 1 + entry.subtree_entries;
  } else {
    for (const auto& ref : std::get<InnerPage>(page).refs) span += ref.subtree_entries;
  }
  return span;
}

std::size_t memory_of_page(const DirPage& page) {
  std::size_t memory = 0;
  if (const auto* leaf = std::get_if<LeafPage>(&page)) {
    for (const auto& entry : leaf->entries) memory += memory_of(entry);
  } else {
    for (const auto& ref : std::get<InnerPage>(page).refs) memory += memory_of(ref);
  }
  return memory;
}

std::string encode_dir_entry(const DirEntry& entry) {
  std::string out;
  ByteWriter(out).u8(static_cast<std::uint8_t>(NodeKind::kEntry));
  EntryContext context;
  put_entry(entry, context, out);
  return out;
}

Result<DirEntry> decode_dir_entry(std::string_view bytes) {
  if (bytes.size() > kDirPageBytesMax) return damaged_node("it is too long");
  ByteReader r(bytes);
  if (static_cast<NodeKind>(r.u8()) != NodeKind::kEntry) return damaged_node("it is not an entry");
  EntryContext context;
  DirEntry entry = get_entry(r, context);
  if (!r.done() || !(entry.name.empty() || is_entry_name(entry.name))) {
    return damaged_node("an entry is malformed");
  }
  return entry;
}

std::string encode_recipe_object(const Recipe& recipe) {
  std::string out;
  ByteWriter(out).u8(static_cast<std::uint8_t>(NodeKind::kRecipe));
  ChunkId base;
  encode_recipe(recipe, base, out);
  return out;
}

Result<Recipe> decode_recipe_object(std::string_view bytes) {
  ByteReader r(bytes);
  if (static_cast<NodeKind>(r.u8()) != NodeKind::kRecipe) return damaged_node("it is not a recipe");
  ChunkId base;
  Recipe recipe = decode_recipe(r, base);
  if (!r.done()) return damaged_node("a recipe is malformed");
  return recipe;
}

bool is_page_boundary(std::string_view name, unsigned level) {
  return XXH3_64bits_withSeed(name.data(), name.size(), level) % kBoundarySpacing == 0;
}

}  // namespace varve::format
