// SPDX-License-Identifier: Apache-2.0
// One file of an open version, in memory and in the overlay.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "format/dir_node.h"
#include "format/recipe.h"
#include "varve/backup.h"
#include "varve/result.h"
#include "varve/types.h"
#include "version/inode_content.h"
#include "version/inode_staging.h"

namespace varve::version {

/// The part of an inode that only a directory of an open version uses.
struct InodeDirectory {
  Ino parent = 0;
  std::uint64_t children = 0;  ///< Number of names in the directory.
  std::uint32_t subdirectories = 0;
  format::NodeId base_page{};  ///< Top page, for a directory of the base.
};

/// One file of an open version. Guarded by OpenState::mutex.
struct OpenInode {
  Ino ino = 0;
  std::uint32_t mode = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint32_t nlink = 1;  ///< Number of names; for a directory, always 1 until removed.
  std::uint64_t rdev = 0;
  Timestamp mtime;
  Timestamp ctime;
  Timestamp atime;
  Xattrs xattrs;
  std::string symlink_target;
  InodeDirectory directory;  ///< Used by a directory.
  InodeContent content;      ///< Used by a regular file.
  InodeStaging staging;      ///< Used by a regular file.

  // Members kept only in memory.
  std::uint32_t handles = 0;
  std::uint32_t writers = 0;  ///< Number of handles open for writing.
  bool dirty = false;         ///< True if the next checkpoint must record the inode.
  bool flushing = false;      ///< True while a checkpoint writes the inode's record.
  bool held = false;          ///< True for a removed inode held by RemovedInodes.
  bool as_in_base = false;    ///< True if the inode is a file of the base, without a change.

  [[nodiscard]] bool is_directory() const { return (mode & S_IFMT) == S_IFDIR; }
  [[nodiscard]] bool is_regular() const { return (mode & S_IFMT) == S_IFREG; }
  /// Returns the attributes in the form of stat(2).
  [[nodiscard]] Attributes attributes() const;
  [[nodiscard]] OpenEntry entry() const { return {ino, attributes(), as_in_base}; }
};

/// Returns the error for an overlay with contradictory records. `what` completes the message "the
/// open version's overlay: ...".
[[nodiscard]] Error damaged_overlay(const char* what);

/// Returns the overlay's record of an inode, with the recipe made durable in the same record.
[[nodiscard]] std::string encode_open_inode(const OpenInode& inode, const format::Recipe& recipe);
/// Returns the record of an inode at rest, whose recipe may still be in the catalog.
[[nodiscard]] std::string encode_open_inode(const OpenInode& inode);
/// Decodes an overlay's record. `base_end` is the end of the base's inode numbers
/// (CloneBase::end()); 0 without a base.
/// Errors: kCorrupt on malformed bytes, and if the record refers to a base without the inode.
[[nodiscard]] Result<std::unique_ptr<OpenInode>> decode_open_inode(Ino ino, std::string_view bytes,
                                                                   Ino base_end);

}  // namespace varve::version
