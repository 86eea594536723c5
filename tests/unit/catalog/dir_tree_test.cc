// SPDX-License-Identifier: Apache-2.0
// Compares sealed trees with plain lists, and checks the cost of unchanged and changed directories.
#include "catalog/dir_tree.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "catalog/link_table.h"
#include "meta/schema.h"
#include "support/temp_repository.h"

namespace varve::catalog {
namespace {

using varve::test::must;

constexpr SeriesId kSeries{1};

// An entry of a tree in memory. A directory has children.
struct Item {
  std::string name;
  std::uint64_t size = 0;
  bool directory = false;
  std::vector<Item> children;  // In name order.
};

struct Flat {
  std::string path;
  Rank parent = 0;
  const Item* item = nullptr;
};

void flatten(const Item& item, const std::string& path, Rank parent, std::vector<Flat>& out) {
  const Rank own = out.size();
  out.push_back({path, parent, &item});
  for (const auto& child : item.children) flatten(child, path + "/" + child.name, own, out);
}

Item flat_directory(std::size_t entries) {
  Item root;
  root.directory = true;
  for (std::size_t i = 0; i < entries; ++i) {
    root.children.push_back({"file" + std::to_string(i), i, false, {}});
  }
  std::sort(root.children.begin(), root.children.end(),
            [](const Item& a, const Item& b) { return a.name < b.name; });
  return root;
}

class DirTreeTest : public testing::Test {
 protected:
  DirTreeTest() : catalog_(open()) {}
  meta::Env open() {
    meta::EnvOptions options;
    options.tables = meta::catalog::kTables;
    return must(meta::Env::open(directory_.path(), options));
  }

  // Stores `item`. `before` is the directory's entry in the previous version, or null.
  format::DirEntry build(ObjectReader& reader, ObjectWriter& objects, const Item& item,
                         const format::DirEntry* before) {
    format::DirEntry entry;
    entry.name = item.name;
    if (!item.directory) {
      entry.mode = S_IFREG | 0644;
      entry.size = entry.data_bytes = item.size;
      entry.recipe.emplace();
      if (item.size != 0) {
        entry.recipe->append_chunk(ChunkId{item.size}, static_cast<std::uint32_t>(item.size));
      }
      return entry;
    }
    entry.mode = S_IFDIR | 0755;
    PreviousObjects previous;
    if (before != nullptr) previous = must(PreviousObjects::collect(reader, before->child));
    DirBuilder builder(objects, previous);
    for (const auto& child : item.children) {
      format::DirEntry child_before;
      bool present = false;
      if (before != nullptr && child.directory) {
        const DirTree tree(reader, *before);
        const auto found = tree.lookup({nullptr, before, 0, 0}, child.name);
        present = found.has_value();
        if (present) child_before = *found->entry;
      }
      must(builder.add(build(reader, objects, child, present ? &child_before : nullptr)));
    }
    const auto built = must(builder.finish());
    entry.child = built.root;
    entry.subtree_entries = built.subtree_entries;
    entry.subdirectories = built.subdirectories;
    return entry;
  }
  struct Stored {
    format::DirEntry root;
    std::uint64_t new_objects = 0;
  };
  Stored store(const Item& item, const format::DirEntry* before = nullptr) {
    ObjectReader reader(catalog_, kSeries);
    ObjectWriter objects(catalog_, reader, kSeries, VersionNumber{++version_});
    Stored stored;
    stored.root = build(reader, objects, item, before);
    must(objects.flush());
    stored.new_objects = objects.new_objects();
    return stored;
  }

  void expect_tree(const Item& item) {
    const auto stored = store(item);
    std::vector<Flat> wanted;
    flatten(item, "", 0, wanted);
    EXPECT_EQ(stored.root.subtree_entries, wanted.size() - 1);
    ObjectReader objects(catalog_, kSeries);
    const DirTree tree(objects, stored.root);
    TreeWalker walker(objects, stored.root);
    for (Rank rank = 0; rank < wanted.size(); ++rank) {
      const auto found = must(walker.next());
      ASSERT_TRUE(found);
      ASSERT_EQ(found->rank, rank);
      ASSERT_EQ(found->parent, wanted[rank].parent) << wanted[rank].path;
      ASSERT_EQ(found->entry->name, wanted[rank].item->name);
      if (!wanted[rank].item->directory) {
        ASSERT_EQ(found->entry->size, wanted[rank].item->size);
      }
    }
    EXPECT_FALSE(must(walker.next()));
    // Lookups at random entries, by rank and by name.
    std::mt19937_64 random(1);
    for (int i = 0; i < 300; ++i) {
      const Rank rank = random() % wanted.size();
      const auto& at = wanted[rank];
      const Rank after = std::min<Rank>(rank + 1, wanted.size() - 1);
      ASSERT_EQ(must(tree.get(after)).entry->name, wanted[after].item->name);
      const auto found = must(tree.get(rank));
      ASSERT_EQ(found.entry->name, at.item->name);
      ASSERT_EQ(found.parent, at.parent);
      must(walker.seek(rank));
      ASSERT_EQ(must(walker.next())->rank, rank);
      if (rank != 0) {
        const auto by_name = must(tree.lookup(must(tree.get(at.parent)), at.item->name));
        ASSERT_EQ(by_name.rank, rank) << at.path;
        ASSERT_EQ(
            varve::test::code_of(tree.lookup(must(tree.get(at.parent)), at.item->name + "\x01")),
            ErrorCode::kNotFound);
      }
      if (!at.item->directory) {
        ASSERT_EQ(varve::test::code_of(tree.lookup(found, "x")), ErrorCode::kNotDirectory);
        continue;
      }
      expect_list(tree, found, at, random());
    }
    EXPECT_EQ(varve::test::code_of(tree.get(wanted.size())), ErrorCode::kNotFound);
    EXPECT_EQ(varve::test::code_of(tree.get(wanted.size() + 1000)), ErrorCode::kNotFound);
    must(walker.seek(wanted.size() + 5));
    EXPECT_FALSE(must(walker.next()));
  }

  // Checks the whole listing, and its rest after a random place.
  static void expect_list(const DirTree& tree, const TreeEntry& directory, const Flat& at,
                          std::uint64_t any) {
    std::vector<std::string> names;
    std::vector<Rank> ranks;
    must(tree.list(directory, 0, [&](const TreeEntry& entry) {
      names.push_back(entry.entry->name);
      ranks.push_back(entry.rank);
      EXPECT_EQ(entry.parent, directory.rank);
      return true;
    }));
    std::vector<std::string> wanted;
    for (const auto& child : at.item->children) wanted.push_back(child.name);
    ASSERT_EQ(names, wanted);
    if (names.empty()) return;
    const std::size_t from = any % names.size();
    std::vector<std::string> rest;
    must(tree.list(directory, ranks[from], [&](const TreeEntry& entry) {
      rest.push_back(entry.entry->name);
      return rest.size() < 50;
    }));
    wanted.erase(wanted.begin(), wanted.begin() + static_cast<std::ptrdiff_t>(from) + 1);
    wanted.resize(std::min<std::size_t>(wanted.size(), 50));
    ASSERT_EQ(rest, wanted);
  }

  varve::test::TempDirectory directory_;
  meta::Env catalog_;
  std::uint32_t version_ = 0;
};

TEST_F(DirTreeTest, CursorGoesOnBehindAnyName) {
  for (const std::size_t entries : {0, 1, 40, 3000}) {
    const auto directory = flat_directory(entries);
    const auto stored = store(directory);
    ObjectReader reader(catalog_, kSeries);
    EXPECT_EQ(must(count_names(reader, stored.root.child)), entries);
    DirCursor cursor(reader, stored.root.child, 10);
    const auto& all = directory.children;
    std::vector<std::string> places = {"", "a", "file", "zz"};
    for (std::size_t i = 0; i < entries; i += 1 + entries / 50) {
      places.push_back(all[i].name);
      places.push_back(all[i].name + "!");
    }
    for (const auto& after : places) {
      auto expected =
          std::find_if(all.begin(), all.end(), [&](const Item& item) { return item.name > after; });
      must(cursor.seek(after));
      for (int left = 40; left > 0; --left) {
        const auto found = must(cursor.next());
        ASSERT_EQ(found.has_value(), expected != all.end()) << after;
        if (!found) break;
        EXPECT_EQ(found->entry->name, expected->name);
        EXPECT_EQ(found->rank, 11 + static_cast<Rank>(expected - all.begin()));
        EXPECT_EQ(found->parent, 10U);
        ++expected;
      }
    }
  }
}

TEST_F(DirTreeTest, EmptyDirectoryHasNoEntries) { expect_tree(flat_directory(0)); }
TEST_F(DirTreeTest, OneEntryIsFound) { expect_tree(flat_directory(1)); }
TEST_F(DirTreeTest, HundredEntriesAreFound) { expect_tree(flat_directory(100)); }
TEST_F(DirTreeTest, TwentyThousandEntriesAreFound) { expect_tree(flat_directory(20000)); }

TEST_F(DirTreeTest, NestedDirectoriesAreWalkedInTreeOrder) {
  std::mt19937_64 random(3);
  const std::function<Item(std::string, int)> make = [&](std::string name, int depth) {
    Item item{std::move(name), 0, true, {}};
    const std::size_t entries = random() % (depth == 0 ? 200 : 30);
    std::map<std::string, Item> children;
    for (std::size_t i = 0; i < entries; ++i) {
      const auto child = "n" + std::to_string(random() % 100000);
      children[child] = depth < 4 && random() % 5 == 0 ? make(child, depth + 1)
                                                       : Item{child, random() % 1000, false, {}};
    }
    for (auto& [child_name, child] : children) item.children.push_back(std::move(child));
    return item;
  };
  for (int i = 0; i < 5; ++i) expect_tree(make("", 0));
}

TEST_F(DirTreeTest, DeepChainIsFound) {
  Item item{"leaf", 5, false, {}};
  for (int i = 0; i < 500; ++i) item = Item{"d", 0, true, {std::move(item)}};
  item.name.clear();
  expect_tree(item);
}

TEST_F(DirTreeTest, UnchangedTreeStoresNothingAndChangedEntryFewPages) {
  auto item = flat_directory(20000);
  const auto first = store(item);
  EXPECT_GT(first.new_objects, 20U);
  const auto again = store(item, &first.root);
  EXPECT_EQ(again.new_objects, 0U);
  EXPECT_EQ(again.root.child, first.root.child);
  item.children[12345].size += 7;
  const auto changed = store(item, &again.root);
  EXPECT_LE(changed.new_objects, 4U);
  EXPECT_NE(changed.root.child, first.root.child);
  item.children.erase(item.children.begin() + 777);
  const auto removed = store(item, &changed.root);
  EXPECT_LE(removed.new_objects, 6U);
  item.children.insert(item.children.begin() + 5000,
                       {item.children[4999].name + "+", 1, false, {}});
  const auto inserted = store(item, &removed.root);
  EXPECT_LE(inserted.new_objects, 6U);
  ObjectReader reader(catalog_, kSeries);
  const DirTree tree(reader, inserted.root);
  expect_list(tree, must(tree.get(0)), {"", 0, &item}, 4998);
}

TEST_F(DirTreeTest, ChangeDeepDownStoresOnlyThePathToIt) {
  Item root{"", 0, true, {}};
  for (int i = 100; i < 300; ++i) {
    auto child = flat_directory(50);
    child.name = "d" + std::to_string(i);
    for (auto& file : child.children) file.size += static_cast<std::uint64_t>(i) * 100;
    root.children.push_back(std::move(child));
  }
  const auto first = store(root);
  EXPECT_GT(first.new_objects, 200U);
  root.children[150].children[20].size += 1;
  const auto changed = store(root, &first.root);
  EXPECT_LE(changed.new_objects, 6U);
  EXPECT_GE(changed.new_objects, 2U);
  // Restores the old state. The writer compares only with the previous version, so it stores the
  // path again.
  root.children[150].children[20].size -= 1;
  EXPECT_LE(store(root, &changed.root).new_objects, 6U);
  EXPECT_EQ(store(root, &first.root).new_objects, 0U);
}

TEST_F(DirTreeTest, LongRecipeIsAnObjectOfItsOwn) {
  ObjectReader reader(catalog_, kSeries);
  format::Recipe recipe;
  for (std::uint64_t i = 0; i < 50; ++i) recipe.append_chunk(ChunkId{i * 10 + 1}, 100);
  format::NodeId stored_recipe;
  format::NodeId stored_page;
  for (std::uint32_t number = 1; number <= 2; ++number) {
    PreviousObjects previous;
    if (number == 2) previous = must(PreviousObjects::collect(reader, stored_page));
    ObjectWriter objects(catalog_, reader, kSeries, VersionNumber{number});
    const auto id = must(objects.put_recipe(recipe, previous));
    DirBuilder builder(objects, previous);
    format::DirEntry entry;
    entry.name = "a";
    entry.mode = S_IFREG | 0600;
    entry.size = entry.data_bytes = recipe.bytes();
    entry.recipe_id = id;
    must(builder.add(std::move(entry)));
    const auto built = must(builder.finish());
    must(objects.flush());
    EXPECT_EQ(*must(reader.recipe(id, recipe.bytes())), recipe);
    EXPECT_EQ(objects.new_objects(), number == 1 ? 2U : 0U);
    if (number == 2) {
      EXPECT_EQ(id, stored_recipe);
      EXPECT_EQ(built.root, stored_page);
    }
    stored_recipe = id;
    stored_page = built.root;
  }
}

TEST_F(DirTreeTest, NeighbourIsFoundWithoutAnotherPage) {
  const auto stored = store(flat_directory(2000));
  PageCache cache;
  ObjectReader objects(catalog_, kSeries, &cache);
  const DirTree tree(objects, stored.root);
  const auto found = must(tree.get(1));
  const auto& entries = std::get<format::LeafPage>(*found.page).entries;
  ASSERT_LT(entries.size(), 2000U);
  // The cache drops its pages, and the catalog loses the tree's top page.
  for (std::uint64_t i = 0; i < 5000; ++i) {
    const auto page = std::make_shared<const format::DirPage>(format::LeafPage{});
    cache.add({SeriesId{9}, i}, {page, 0}, 1);
  }
  {
    auto txn = must(meta::WriteTxn::begin(catalog_));
    must(txn.erase(meta::catalog::kNodes, meta::object_key(kSeries, stored.root.child.value)));
    must(txn.commit());
  }
  for (Rank rank = 1; rank <= entries.size(); ++rank) {
    ASSERT_EQ(must(tree.get(rank)).entry, &entries[rank - 1]);
  }
  EXPECT_EQ(varve::test::code_of(tree.get(entries.size() + 1)), ErrorCode::kCorrupt);
}

TEST_F(DirTreeTest, MissingOrDamagedPageIsCorrupt) {
  const auto first = store(flat_directory(50));
  const auto second = store(flat_directory(60));
  {
    auto txn = must(meta::WriteTxn::begin(catalog_));
    const auto one = meta::object_key(kSeries, first.root.child.value);
    const std::string record(*must(txn.get(meta::catalog::kNodes, one)));
    must(txn.put(meta::catalog::kNodes, one, record.substr(0, record.size() - 1) + "~"));
    must(txn.erase(meta::catalog::kNodes, meta::object_key(kSeries, second.root.child.value)));
    must(txn.commit());
  }
  ObjectReader reader(catalog_, kSeries);
  EXPECT_EQ(varve::test::code_of(reader.page(first.root.child)), ErrorCode::kCorrupt);
  EXPECT_EQ(varve::test::code_of(reader.page(second.root.child)), ErrorCode::kCorrupt);
  EXPECT_EQ(varve::test::code_of(PreviousObjects::collect(reader, second.root.child)),
            ErrorCode::kCorrupt);
}

TEST_F(DirTreeTest, PageThatRefersToAYoungerOneIsCorrupt) {
  ObjectReader reader(catalog_, kSeries);
  ObjectWriter objects(catalog_, reader, kSeries, VersionNumber{1});
  format::LeafPage page;
  page.entries.emplace_back();
  page.entries[0].name = "loop";
  page.entries[0].mode = S_IFDIR | 0755;
  page.entries[0].child = format::NodeId::make(VersionNumber{1}, 0);  // Its own id.
  const auto id = must(objects.put_page(page, {}));
  must(objects.flush());
  EXPECT_EQ(id, page.entries[0].child);
  EXPECT_EQ(varve::test::code_of(reader.page(id)), ErrorCode::kCorrupt);
}

// A directory that occurs twice in each directory above it: 40 pages, 2^40 files.
TEST_F(DirTreeTest, SharedDirectoriesEndWhereCountsContradict) {
  ObjectReader reader(catalog_, kSeries);
  ObjectWriter objects(catalog_, reader, kSeries, VersionNumber{1});
  format::LeafPage page;
  page.entries.emplace_back();
  page.entries[0].name = "file";
  page.entries[0].mode = S_IFREG | 0644;
  page.entries[0].recipe.emplace();
  auto below = must(objects.put_page(page, {}));
  for (int level = 0; level < 40; ++level) {
    page.entries.clear();
    for (const char* name : {"a", "b"}) {
      auto& entry = page.entries.emplace_back();
      entry.name = name;
      entry.mode = S_IFDIR | 0755;
      entry.child = below;
      entry.subtree_entries = 1;
    }
    below = must(objects.put_page(page, {}));
  }
  must(objects.flush());
  format::DirEntry root;
  root.mode = S_IFDIR | 0755;
  root.child = below;
  root.subtree_entries = 4;
  TreeWalker walker(reader, root);
  int steps = 0;
  auto found = walker.next();
  while (found && *found && steps < 1000) {
    found = walker.next();
    ++steps;
  }
  EXPECT_EQ(varve::test::code_of(found), ErrorCode::kCorrupt);
  EXPECT_LT(steps, 10);
  const DirTree tree(reader, root);
  const auto directory = must(tree.lookup({nullptr, &root, 0, 0}, "a"));
  const auto nothing = [](const TreeEntry&) { return true; };
  EXPECT_EQ(varve::test::code_of(tree.list(directory, 0, nothing)), ErrorCode::kCorrupt);
  EXPECT_EQ(varve::test::code_of(LinkTable::collect(reader, root)), ErrorCode::kCorrupt);
}

TEST_F(DirTreeTest, WalkComesBackToPagesFarAbove) {
  // A tree deeper than the pages that a walk holds, with files after each directory.
  Item deep;
  deep.directory = true;
  deep.children.push_back({"z", 1, false, {}});
  for (int i = 0; i < 300; ++i) {
    Item above;
    above.directory = true;
    deep.name = "d";
    above.children.push_back(std::move(deep));
    above.children.push_back({"z", 1, false, {}});
    deep = std::move(above);
  }
  deep.name.clear();
  expect_tree(deep);
}

}  // namespace
}  // namespace varve::catalog
