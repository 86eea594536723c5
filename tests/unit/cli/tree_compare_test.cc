// SPDX-License-Identifier: Apache-2.0
#include "cli/tree_compare.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace varve::cli {
namespace {

/// A tree of empty files: paths with their modification times. Folders follow from the paths.
class FakeTree final : public VersionReader {
 public:
  explicit FakeTree(const std::map<std::string, int>& files) {
    nodes_.push_back({"", true, {}, 0});
    for (const auto& [path, mtime] : files) {
      std::size_t at = 0;
      for (std::size_t begin = 0; begin < path.size();) {
        const std::size_t end = std::min(path.find('/', begin), path.size());
        const std::string name = path.substr(begin, end - begin);
        begin = end + 1;
        auto& children = nodes_[at].children;
        const auto [found, is_new] = children.emplace(name, nodes_.size());
        at = found->second;
        if (is_new) nodes_.push_back({name, end < path.size(), {}, mtime});
      }
    }
  }

  const VersionInfo& info() const override { return info_; }
  Result<SealedEntry> get(Rank rank) override {
    const Node& node = nodes_.at(rank);
    SealedEntry entry;
    entry.rank = rank;
    entry.attributes.mode = (node.is_directory ? S_IFDIR : S_IFREG) | 0644U;
    entry.attributes.mtime.seconds = node.is_directory ? 0 : node.mtime;
    entry.attributes.size = static_cast<std::uint64_t>(node.mtime);
    if (node.is_directory) entry.attributes.size = 0;
    return entry;
  }
  Result<SealedEntry> lookup(Rank, std::string_view) override {
    return Error(ErrorCode::kNotFound, "unused");
  }
  Result<Rank> parent(Rank) override { return Error(ErrorCode::kNotFound, "unused"); }
  Result<void> list(Rank directory, std::uint64_t after, const Visitor& visit) override {
    std::uint64_t position = 0;
    for (const auto& [name, child] : nodes_.at(directory).children) {
      if (++position <= after) continue;
      if (!visit(position, name, *get(child))) break;
    }
    return {};
  }
  Result<std::string> read_link(Rank) override { return std::string(); }
  Result<Xattrs> xattrs(Rank) override { return Xattrs(); }
  Result<std::shared_ptr<FileReader>> open(Rank) override {
    return Error(ErrorCode::kInvalid, "unused");
  }
  Result<void> locate_data(Rank, std::uint64_t, const PieceVisitor&) override { return {}; }
  void read_pieces(std::span<const StoredPiece>, const PieceTaker&) override {}

 private:
  struct Node {
    std::string name;
    bool is_directory = false;
    std::map<std::string, std::size_t> children;
    int mtime = 0;
  };
  VersionInfo info_;
  std::vector<Node> nodes_;
};

using Told = std::vector<std::pair<TreeChange::Kind, std::string>>;

/// Compares in as many parts as are needed, of at most `names` names and `rows` rows each.
Told compare_in_parts(FakeTree& before, FakeTree& after, std::uint64_t names, std::size_t rows,
                      bool added_only = false) {
  const EntryAt left{before, *before.get(0)};
  const EntryAt right{after, *after.get(0)};
  TreeComparison comparison{.path = {}, .added_only = added_only, .names_max = names};
  Told told;
  for (std::size_t parts = 0; parts < 1000; ++parts) {
    std::size_t in_part = 0;
    const auto compared = compare_trees(&left, &right, comparison, [&](const TreeChange& change) {
      told.emplace_back(change.kind, change.path);
      return ++in_part < rows;
    });
    if (!compared) {
      ADD_FAILURE() << compared.error().message();
      break;
    }
    EXPECT_LE(compared->names, names);
    EXPECT_LE(in_part, rows + 1);
    if (!compared->stopped) return told;
    comparison.behind = *compared->stopped;
  }
  ADD_FAILURE() << "the parts do not come to an end";
  return told;
}

std::map<std::string, int> random_files(std::mt19937& random) {
  const std::vector<std::string> names{"a", "a!", "a0", "b", "c"};
  std::map<std::string, int> files;
  for (int i = 0; i < 25; ++i) {
    std::string path;
    for (unsigned depth = random() % 4 + 1; depth > 0; --depth) {
      if (!path.empty()) path += '/';
      path += names[random() % names.size()];
    }
    // A name is a file or a folder, not both.
    const bool clashes = std::ranges::any_of(files, [&](const auto& one) {
      return one.first.starts_with(path + "/") || path.starts_with(one.first + "/");
    });
    if (!clashes) files[path] = static_cast<int>(random() % 2) + 1;
  }
  return files;
}

TEST(CompareTrees, PartsOfAnyLengthTellTheSameAsOneComparison) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    FakeTree before(random_files(random));
    FakeTree after(random_files(random));
    for (const bool added_only : {false, true}) {
      const Told whole = compare_in_parts(before, after, 100'000, 100'000, added_only);
      const std::set<std::pair<TreeChange::Kind, std::string>> distinct(whole.begin(), whole.end());
      EXPECT_EQ(distinct.size(), whole.size());
      for (const std::uint64_t names : {1U, 2U, 7U}) {
        EXPECT_EQ(compare_in_parts(before, after, names, 100'000, added_only), whole) << seed;
      }
      for (const std::size_t rows : {1U, 3U}) {
        EXPECT_EQ(compare_in_parts(before, after, 100'000, rows, added_only), whole) << seed;
      }
    }
  }
}

TEST(CompareTrees, AddedOnlyTellsOfAddedNamesAlone) {
  FakeTree before({{"gone/x", 1}, {"same", 1}, {"turned/x", 1}});
  FakeTree after({{"new/x", 1}, {"same", 2}, {"turned", 1}});
  const Told told = compare_in_parts(before, after, 100, 100, true);
  const Told expected{{TreeChange::Kind::kAdded, "new"},
                      {TreeChange::Kind::kAdded, "new/x"},
                      {TreeChange::Kind::kAdded, "turned"}};
  EXPECT_EQ(told, expected);
}

TEST(CompareTrees, APlaceThatNeitherTreeHasBeginsBehindIt) {
  FakeTree before({{"a", 1}});
  FakeTree after({{"a", 1}, {"b/x", 1}, {"d", 1}});
  const EntryAt left{before, *before.get(0)};
  const EntryAt right{after, *after.get(0)};
  std::vector<std::string> paths;
  const auto compared = compare_trees(&left, &right, {.path = {}, .behind = "c/../\n/none"},
                                      [&](const TreeChange& change) {
                                        paths.push_back(change.path);
                                        return true;
                                      });
  ASSERT_TRUE(compared);
  EXPECT_EQ(paths, std::vector<std::string>{"d"});
}

}  // namespace
}  // namespace varve::cli
