// SPDX-License-Identifier: Apache-2.0
// The files of a version, as a test expects or finds them.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "varve/backup.h"
#include "varve/browse.h"

namespace varve::test {

inline std::shared_ptr<const std::string> shared_text(std::string bytes) {
  return std::make_shared<const std::string>(std::move(bytes));
}

/// A regular file or a symlink. Copies share the content.
struct TreeNode {
  bool is_link = false;
  std::shared_ptr<const std::string> content = std::make_shared<const std::string>();
  Xattrs xattrs{};

  friend bool operator==(const TreeNode& a, const TreeNode& b) {
    return a.is_link == b.is_link && a.xattrs == b.xattrs &&
           (a.content == b.content || *a.content == *b.content);
  }
};

/// The files and symlinks of a version by path. Directories are not compared.
using VersionTree = std::map<std::string, TreeNode>;

/// Returns the file with a path, or nullopt.
inline std::optional<TreeNode> node_at(const VersionTree& tree, const std::string& path) {
  const auto found = tree.find(path);
  return found == tree.end() ? std::nullopt : std::optional(found->second);
}

/// Returns the directory of a path, "" for the root, and the name in it.
inline std::pair<std::string, std::string> split_path(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return {"", path};
  return {path.substr(0, slash), path.substr(slash + 1)};
}

/// Reads a whole version. Throws if any of it cannot be read.
VersionTree read_tree(VersionReader& version);
VersionTree read_tree(VersionWriter& version);

}  // namespace varve::test
