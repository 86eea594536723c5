// SPDX-License-Identifier: Apache-2.0
// A model of the tree of a version, in plain maps and strings.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "varve/backup.h"
#include "varve/browse.h"

namespace varve::test {

struct Node;
using NodePtr = std::shared_ptr<Node>;

struct Node {
  Ino ino = 0;
  std::uint32_t mode = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint64_t rdev = 0;
  std::uint32_t nlink = 1;
  std::optional<Timestamp> mtime;  ///< Known only where it was set and nothing came after.
  std::string target;
  std::string content;
  std::map<std::string, std::string> xattrs;
  std::map<std::string, NodePtr> children;
  Node* parent = nullptr;  ///< Parent of a directory.

  [[nodiscard]] bool is_directory() const;
  [[nodiscard]] bool is_regular() const;
  [[nodiscard]] std::uint32_t subdirectories() const;
};

/// A copy of the model for a version with the same tree, whose inode numbers it asks for. Each
/// node is added to one of the lists.
NodePtr copy_model(VersionWriter& version, const Node& root, std::vector<NodePtr>& directories,
                   std::vector<NodePtr>& others);

/// Adds a gtest failure for each difference between the tree and the model.
void compare_open(VersionWriter& version, const Node& root);
void compare_sealed(VersionReader& version, const Node& root);
/// The same, and that rank_of leads from each inode to an entry of one of its names.
void compare_ranks(VersionReader& version, const Node& root, const SealOutcome& outcome);

}  // namespace varve::test
