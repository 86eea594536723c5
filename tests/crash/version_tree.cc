// SPDX-License-Identifier: Apache-2.0
#include "version_tree.h"

#include <sys/stat.h>

#include <vector>

#include "support/temp_repository.h"

namespace varve::test {
namespace {

struct Found {
  std::string path;
  std::uint64_t number;  // A rank or an inode number.
  Attributes attributes;
};

void read_directory(VersionReader& version, Rank directory, const std::string& prefix,
                    VersionTree& tree) {
  std::vector<Found> all;
  must(version.list(directory, 0,
                    [&](std::uint64_t, std::string_view name, const SealedEntry& entry) {
                      all.push_back({prefix + std::string(name), entry.rank, entry.attributes});
                      return true;
                    }));
  for (const auto& one : all) {
    if (S_ISDIR(one.attributes.mode)) {
      read_directory(version, one.number, one.path + "/", tree);
      continue;
    }
    TreeNode node;
    node.is_link = S_ISLNK(one.attributes.mode);
    node.content =
        shared_text(node.is_link ? must(version.read_link(one.number))
                                 : read_all(*must(version.open(one.number)), one.attributes.size));
    node.xattrs = must(version.xattrs(one.number));
    tree[one.path] = std::move(node);
  }
}

void read_directory(VersionWriter& version, Ino directory, const std::string& prefix,
                    VersionTree& tree) {
  std::vector<Found> all;
  must(version.list(directory, "", [&](std::string_view name, const OpenEntry& entry) {
    all.push_back(
        {prefix + std::string(name), static_cast<std::uint64_t>(entry.ino), entry.attributes});
    return true;
  }));
  for (const auto& one : all) {
    const auto ino = static_cast<Ino>(one.number);
    if (S_ISDIR(one.attributes.mode)) {
      read_directory(version, ino, one.path + "/", tree);
      continue;
    }
    TreeNode node;
    node.is_link = S_ISLNK(one.attributes.mode);
    node.content =
        shared_text(node.is_link ? must(version.read_link(ino)) : read_open(version, ino));
    node.xattrs = must(version.xattrs(ino));
    tree[one.path] = std::move(node);
  }
}

}  // namespace

VersionTree read_tree(VersionReader& version) {
  VersionTree tree;
  read_directory(version, 0, "", tree);
  return tree;
}

VersionTree read_tree(VersionWriter& version) {
  VersionTree tree;
  read_directory(version, kRootIno, "", tree);
  return tree;
}

}  // namespace varve::test
