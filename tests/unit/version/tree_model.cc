// SPDX-License-Identifier: Apache-2.0
#include "tree_model.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "support/temp_repository.h"
#include "varve/mount.h"

namespace varve::test {

namespace {

void compare_attributes(const Attributes& got, const Node& node, const std::string& path) {
  EXPECT_EQ(got.mode, node.mode) << path;
  EXPECT_EQ(got.uid, node.uid) << path;
  EXPECT_EQ(got.gid, node.gid) << path;
  EXPECT_EQ(got.rdev, node.rdev) << path;
  EXPECT_EQ(got.nlink, node.is_directory() ? 2 + node.subdirectories() : node.nlink) << path;
  if (node.mtime) {
    EXPECT_EQ(got.mtime, *node.mtime) << path;
  }
  if (node.is_regular()) {
    EXPECT_EQ(got.size, node.content.size()) << path;
    EXPECT_LE(got.data_bytes, got.size) << path;
  }
  if (!node.target.empty()) {
    EXPECT_EQ(got.size, node.target.size()) << path;
  }
}

void compare_xattrs(const Xattrs& got, const Node& node, const std::string& path) {
  std::map<std::string, std::string> all;
  for (const auto& xattr : got) all[xattr.name] = xattr.value;
  EXPECT_EQ(all, node.xattrs) << path;
}

// Every byte that is not zero lies in what is called data.
template <typename File>
void compare_holes(File& file, const std::string& content, const std::string& path) {
  std::uint64_t at = 0;
  while (at < content.size()) {
    const auto data = file.seek_data(at);
    const std::uint64_t from = data ? *data : content.size();
    if (!data) {
      EXPECT_EQ(data.error().code(), ErrorCode::kPastEnd) << path;
    }
    ASSERT_GE(from, at) << path;
    ASSERT_LE(from, content.size()) << path;
    EXPECT_TRUE(std::all_of(content.begin() + static_cast<std::ptrdiff_t>(at),
                            content.begin() + static_cast<std::ptrdiff_t>(from),
                            [](char c) { return c == '\0'; }))
        << path << ": data in the hole at " << at;
    if (!data) return;
    const auto hole = must(file.seek_hole(from));
    ASSERT_GT(hole, from) << path;
    at = hole;
  }
}

template <typename File>
void compare_content(File& file, const Node& node, const std::string& path) {
  const auto got = read_all(file, node.content.size());
  if (got != node.content) {
    const auto at =
        std::mismatch(got.begin(), got.end(), node.content.begin(), node.content.end()).first -
        got.begin();
    ADD_FAILURE() << path << ": " << got.size() << " bytes for " << node.content.size()
                  << ", first difference at " << at;
  }
  compare_holes(file, node.content, path);
}

void compare_open_at(VersionWriter& version, const Node& node, const std::string& path) {
  compare_attributes(must(version.get(node.ino)).attributes, node, path);
  compare_xattrs(must(version.xattrs(node.ino)), node, path);
  if (!node.target.empty()) {
    EXPECT_EQ(must(version.read_link(node.ino)), node.target) << path;
  }
  if (node.is_regular()) {
    const auto file = must(version.open(node.ino, false));
    compare_content(*file, node, path);
  }
  if (!node.is_directory()) return;
  std::map<std::string, Ino> names;
  std::string after;
  for (bool more = true; more;) {
    more = false;
    int left = 7;  // A few at a time, as readdir does.
    must(version.list(node.ino, after, [&](std::string_view name, const OpenEntry& entry) {
      if (left-- == 0) {
        more = true;
        return false;
      }
      EXPECT_TRUE(after.empty() || name > after) << path;
      after = name;
      names.emplace(name, entry.ino);
      return true;
    }));
  }
  std::map<std::string, Ino> wanted;
  for (const auto& [name, child] : node.children) wanted[name] = child->ino;
  EXPECT_EQ(names, wanted) << path;
  for (const auto& [name, child] : node.children) {
    const auto found = version.lookup(node.ino, name);
    ASSERT_TRUE(found) << path << "/" << name;
    EXPECT_EQ(found->ino, child->ino) << path << "/" << name;
    if (child->is_directory()) {
      EXPECT_EQ(must(version.parent(child->ino)), node.ino) << path;
    }
    compare_open_at(version, *child, path + "/" + name);
  }
}

struct SealedNames {
  std::map<Rank, const Node*> node_of;
  std::map<std::uint64_t, const Node*> group_of;
};

void compare_sealed_at(VersionReader& version, const Node& node, Rank rank, const std::string& path,
                       SealedNames& seen) {
  EXPECT_TRUE(seen.node_of.emplace(rank, &node).second) << path;
  const auto entry = must(version.get(rank));
  EXPECT_EQ(entry.rank, rank);
  compare_attributes(entry.attributes, node, path);
  compare_xattrs(must(version.xattrs(rank)), node, path);
  if (node.is_directory() || node.nlink == 1) {
    EXPECT_EQ(entry.link_group, 0U) << path;
  } else {
    EXPECT_NE(entry.link_group, 0U) << path;
    const auto known = seen.group_of.emplace(entry.link_group, &node);
    EXPECT_EQ(known.first->second, &node) << path;
  }
  if (!node.target.empty()) {
    EXPECT_EQ(must(version.read_link(rank)), node.target) << path;
  }
  if (node.is_regular()) {
    const auto file = must(version.open(rank));
    compare_content(*file, node, path);
  }
  if (!node.is_directory()) return;
  std::vector<std::pair<std::string, Rank>> names;
  must(version.list(rank, 0, [&](std::uint64_t, std::string_view name, const SealedEntry& at) {
    names.emplace_back(name, at.rank);
    return true;
  }));
  ASSERT_EQ(names.size(), node.children.size()) << path;
  auto wanted = node.children.begin();
  for (const auto& [name, child] : names) {
    ASSERT_EQ(name, wanted->first) << path;
    EXPECT_EQ(must(version.lookup(rank, name)).rank, child) << path << "/" << name;
    EXPECT_EQ(must(version.parent(child)), rank) << path << "/" << name;
    compare_sealed_at(version, *wanted->second, child, path + "/" + name, seen);
    ++wanted;
  }
}

}  // namespace

NodePtr copy_model(VersionWriter& version, const Node& root, std::vector<NodePtr>& directories,
                   std::vector<NodePtr>& others) {
  std::map<const Node*, NodePtr> copies;
  const std::function<NodePtr(const Node&, Ino)> copy = [&](const Node& from, Ino ino) {
    if (const auto known = copies.find(&from); known != copies.end()) {
      EXPECT_EQ(known->second->ino, ino) << "names of one file have different inode numbers";
      return known->second;
    }
    const auto node = std::make_shared<Node>(from);
    copies[&from] = node;
    node->ino = ino;
    (node->is_directory() ? directories : others).push_back(node);
    for (auto& [name, child] : node->children) {
      child = copy(*child, must(version.lookup(ino, name)).ino);
      if (child->is_directory()) child->parent = node.get();
    }
    return node;
  };
  const auto top = copy(root, kRootIno);
  top->parent = top.get();
  return top;
}

bool Node::is_directory() const { return (mode & S_IFMT) == S_IFDIR; }
bool Node::is_regular() const { return (mode & S_IFMT) == S_IFREG; }
std::uint32_t Node::subdirectories() const {
  return static_cast<std::uint32_t>(
      std::count_if(children.begin(), children.end(),
                    [](const auto& child) { return child.second->is_directory(); }));
}

void compare_open(VersionWriter& version, const Node& root) { compare_open_at(version, root, ""); }

void compare_sealed(VersionReader& version, const Node& root) {
  SealedNames seen;
  compare_sealed_at(version, root, 0, "", seen);
  EXPECT_EQ(version.info().entries, seen.node_of.size() - 1);
}

void compare_ranks(VersionReader& version, const Node& root, const SealOutcome& outcome) {
  SealedNames seen;
  compare_sealed_at(version, root, 0, "", seen);
  std::set<const Node*> mapped;
  outcome.rank_of->for_each([&](Ino ino, std::uint32_t rank) {
    ASSERT_TRUE(seen.node_of.contains(rank)) << ino;
    EXPECT_EQ(seen.node_of[rank]->ino, ino);
    mapped.insert(seen.node_of[rank]);
  });
  for (const auto& [rank, node] : seen.node_of) EXPECT_TRUE(mapped.contains(node)) << rank;
}

}  // namespace varve::test
