// SPDX-License-Identifier: Apache-2.0
// The objects that die with versions, compared with a walk of all trees, over random histories.
#include "catalog/object_set.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "catalog/dir_tree.h"
#include "format/dir_node.h"
#include "meta/schema.h"
#include "support/temp_repository.h"

namespace varve::catalog {
namespace {

using varve::test::must;

/// A tree as an open version has it: what the base's pages still describe, and what has changed.
struct Node {
  bool directory = false;
  std::uint64_t content = 0;  ///< Content of a file.
  format::NodeId stored{};    ///< Recipe or top page in the base; 0 if this is new here.
  bool changed = false;       ///< True if a directory differs from `stored`.
  std::map<std::string, std::shared_ptr<Node>> children;
};

constexpr std::uint32_t kHistories = 300;

using NodePtr = std::shared_ptr<Node>;

/// One series whose versions are sealed, changed and deleted at random.
class History {
 public:
  History(const meta::Env& catalog, SeriesId series, std::uint64_t seed)
      : catalog_(catalog), series_(series), random_(seed), reader_(catalog, series) {
    root_->directory = true;
    root_->changed = true;
  }

  void step() {
    if (random_() % 3 == 0 && !trees_.empty()) {
      erase();
    } else {
      for (auto n = random_() % 8; n > 0; --n) change();
      seal();
    }
  }

 private:
  std::uint32_t pick(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }

  // Returns a random directory, and marks those above it as changed.
  NodePtr pick_directory() {
    NodePtr at = root_;
    at->changed = true;
    for (auto depth = pick(4); depth > 0; --depth) {
      std::vector<NodePtr> inner;
      for (const auto& [name, child] : at->children) {
        if (child->directory) inner.push_back(child);
      }
      if (inner.empty()) break;
      at = inner[pick(static_cast<std::uint32_t>(inner.size()))];
      at->changed = true;
    }
    return at;
  }

  static bool contains(const NodePtr& tree, const NodePtr& wanted) {
    if (tree == wanted) return true;
    return std::ranges::any_of(tree->children,
                               [&](const auto& child) { return contains(child.second, wanted); });
  }

  // Names are few, so that a new entry often takes the place of one that was moved away.
  std::string pick_name() { return "n" + std::to_string(pick(5)); }

  void change() {
    const NodePtr directory = pick_directory();
    const auto name = pick_name();
    switch (pick(5)) {
      case 0:
      case 1: {  // A new file, or new content. Few contents, so that files are alike.
        auto file = std::make_shared<Node>();
        file->content = 1 + pick(6);
        directory->children[name] = file;
        break;
      }
      case 2: {
        auto made = std::make_shared<Node>();
        made->directory = made->changed = true;
        if (!directory->children.contains(name)) directory->children[name] = made;
        break;
      }
      case 3:
        directory->children.erase(name);
        break;
      default: {  // Moves an entry, or gives a file one more name.
        const auto found = directory->children.find(name);
        if (found == directory->children.end()) break;
        const NodePtr moved = found->second;
        const bool link = !moved->directory && pick(2) == 0;
        const NodePtr target = pick_directory();
        if (contains(moved, target)) break;
        if (!link) directory->children.erase(found);
        target->children[pick_name()] = moved;
        break;
      }
    }
  }

  static format::Recipe recipe_of(std::uint64_t content) {
    format::Recipe recipe;
    for (std::uint64_t i = 0; i < 2 * format::kInlineRecipeRunsMax; ++i) {
      recipe.append_chunk(ChunkId{(content << 32) + 2 * i}, 100);
    }
    return recipe;
  }

  // Stores a directory as the sealer does. `previous` is the directory in the same place of the
  // parent version.
  format::DirEntry store(Node& node, const std::string& name, ObjectWriter& objects,
                         format::NodeId in_place) {
    format::DirEntry entry;
    entry.name = name;
    entry.mode = S_IFDIR | 0755;
    if (!node.changed && node.stored != format::NodeId{}) {
      entry.child = node.stored;
      entry.subtree_entries = count(node);
      entry.subdirectories = subdirectories(node);
      return entry;
    }
    const auto before = node.stored != format::NodeId{} ? node.stored : in_place;
    PreviousObjects previous;
    if (before != format::NodeId{}) previous = must(PreviousObjects::collect(reader_, before));
    DirBuilder builder(objects, previous);
    for (const auto& [child_name, child] : node.children) {
      if (child->directory) {
        must(builder.add(store(*child, child_name, objects, directory_in(before, child_name))));
        continue;
      }
      format::DirEntry file;
      file.name = child_name;
      file.mode = S_IFREG | 0644;
      const auto recipe = recipe_of(child->content);
      file.size = file.data_bytes = 100 * recipe.runs.size();
      file.recipe_id = child->stored != format::NodeId{}
                           ? child->stored
                           : must(objects.put_recipe(recipe, previous));
      must(builder.add(std::move(file)));
    }
    const auto built = must(builder.finish());
    entry.child = built.root;
    entry.subtree_entries = built.subtree_entries;
    entry.subdirectories = built.subdirectories;
    node.stored = built.root;
    node.changed = false;
    return entry;
  }

  static std::uint64_t count(const Node& node) {
    std::uint64_t sum = 0;
    for (const auto& [name, child] : node.children) sum += 1 + count(*child);
    return sum;
  }
  static std::uint32_t subdirectories(const Node& node) {
    return static_cast<std::uint32_t>(std::ranges::count_if(
        node.children, [](const auto& child) { return child.second->directory; }));
  }

  // Returns the directory with this name in a directory of the parent version; 0 without one.
  format::NodeId directory_in(format::NodeId directory, const std::string& name) {
    if (directory == format::NodeId{}) return {};
    format::DirEntry above;
    above.mode = S_IFDIR;
    above.child = directory;
    const auto found = DirTree(reader_, above).lookup({nullptr, &above, 0, 0}, name);
    if (!found || (found->entry->mode & S_IFMT) != S_IFDIR) return {};
    return found->entry->child;
  }

  // Gives each file the recipe that the newest version has for its first name, as an overlay finds
  // it there. The names of a file may have different, equal recipes.
  void load_recipes(const Node& directory, std::set<const Node*>& seen) {
    DirCursor cursor(reader_, directory.stored, 0);
    must(cursor.seek(""));
    for (auto at = must(cursor.next()); at; at = must(cursor.next())) {
      Node& child = *directory.children.at(at->entry->name);
      if (child.directory) {
        load_recipes(child, seen);
      } else if (seen.insert(&child).second) {
        child.stored = at->entry->recipe_id;
      }
    }
  }

  // A version that is no clone of the newest one has no base: all of it is written again, and only
  // equal pages in equal places are shared.
  void forget_base(Node& node) {
    node.stored = {};
    node.changed = true;
    for (const auto& [name, child] : node.children) forget_base(*child);
  }

  void seal() {
    const VersionNumber number{next_++};
    if (pick(4) == 0) forget_base(*root_);
    ObjectWriter objects(catalog_, reader_, series_, number);
    const auto parent = trees_.empty() ? format::NodeId{} : trees_.back().root;
    const auto entry = store(*root_, "", objects, parent);
    must(objects.flush());
    std::set<const Node*> seen;
    load_recipes(*root_, seen);
    trees_.push_back({number, entry.child, false});
  }

  void erase() {
    for (auto& tree : trees_) tree.goes = pick(3) == 0;
    // An open version is based on the newest one, which must not go; unless it has no base.
    if (trees_.back().goes) {
      if (pick(2) == 0) {
        trees_.back().goes = false;
      } else {
        forget_base(*root_);
      }
    }
    ObjectSet live;
    ObjectSet expected;
    for (const auto& tree : trees_) {
      if (!tree.goes) must(collect_objects(reader_, tree.root, {}, live));
    }
    for (const auto& tree : trees_) {
      if (tree.goes) must(collect_objects(reader_, tree.root, live, expected));
    }
    ObjectSet dead;
    must(find_dead_objects(reader_, trees_, dead));
    ASSERT_EQ(dead.pages, expected.pages);
    ASSERT_EQ(dead.recipes, expected.recipes);
    auto txn = must(meta::WriteTxn::begin(catalog_));
    must(erase_objects(txn, series_, dead));
    must(txn.commit());
    std::erase_if(trees_, [](const VersionTree& tree) { return tree.goes; });
  }

  const meta::Env& catalog_;
  const SeriesId series_;
  std::mt19937_64 random_;
  ObjectReader reader_;
  const NodePtr root_ = std::make_shared<Node>();
  std::vector<VersionTree> trees_;
  std::uint32_t next_ = 1;
};

TEST(ObjectSetTest, DeadObjectsAreThoseOfAWalkOfAllTrees) {
  const test::TempDirectory directory;
  meta::EnvOptions options;
  options.tables = meta::catalog::kTables;
  const auto catalog = must(meta::Env::open(directory.path(), options));
  for (std::uint32_t seed = 0; seed < kHistories; ++seed) {
    History history(catalog, SeriesId{seed + 1}, seed);
    for (int i = 0; i < 16; ++i) {
      history.step();
      ASSERT_FALSE(testing::Test::HasFatalFailure()) << "seed " << seed << ", step " << i;
    }
  }
}

}  // namespace
}  // namespace varve::catalog
