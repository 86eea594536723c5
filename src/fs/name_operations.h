// SPDX-License-Identifier: Apache-2.0
// The requests that find, create, move and remove names.
#pragma once

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>
#include <sys/types.h>

#include <string>
#include <string_view>

#include "fs/caller.h"
#include "fs/handle_lookup.h"
#include "fs/node_attributes.h"
#include "fs/node_table.h"
#include "fs/reply.h"
#include "fs/sealed_removals.h"
#include "fs/version_directory.h"
#include "varve/result.h"

namespace varve::fs {

/// Answers requests for names. Names of series and versions go to the VersionDirectory, names of
/// files to their version. Thread-safe.
class NameOperations {
 public:
  /// Lifetime: the arguments must outlive the object.
  NameOperations(NodeTable& nodes, const NodeAttributes& attributes, VersionDirectory& versions,
                 SealedRemovals& removals)
      : nodes_(nodes),
        attributes_(attributes),
        versions_(versions),
        removals_(removals),
        handles_(nodes, attributes, versions) {}

  /// Finds a name in a directory, or, for "." and "..", the node of a file handle.
  [[nodiscard]] Result<Reply> lookup(fuse_ino_t parent, std::string_view name);
  /// A directory entry to create.
  struct Wanted {
    std::string_view name;
    mode_t mode = 0;
    dev_t rdev = 0;           ///< Device number, for mknod(2).
    std::string_view target;  ///< Target of a symbolic link.
  };
  /// Creates a file of any kind in a version.
  [[nodiscard]] Result<Reply> make_file(const Caller& caller, fuse_ino_t parent,
                                        const Wanted& wanted);
  /// Creates a series, a version, or a directory in a version.
  [[nodiscard]] Result<Reply> mkdir(const Caller& caller, fuse_ino_t parent, const Wanted& wanted);
  /// Gives a file another name. A file of a sealed version is cloned into the open one.
  [[nodiscard]] Result<Reply> link(fuse_ino_t ino, fuse_ino_t parent, std::string_view name);
  /// Removes a name of a file that is not a directory.
  [[nodiscard]] Result<Reply> unlink(const Caller& caller, fuse_ino_t parent,
                                     std::string_view name);
  /// Removes a series, a version, or an empty directory in a version.
  [[nodiscard]] Result<Reply> rmdir(const Caller& caller, fuse_ino_t parent, std::string_view name);

  /// A name in a directory.
  struct Place {
    fuse_ino_t directory;
    std::string_view name;
  };
  /// Renames a version in its series, or a file in its version. `flags` are those of renameat2(2).
  [[nodiscard]] Result<Reply> rename(const Place& from, const Place& to, unsigned flags);

 private:
  [[nodiscard]] Result<Reply> remove_sealed(const Caller& caller, const Node& directory,
                                            std::string_view name, SealedRemovals::What what);
  [[nodiscard]] Result<Reply> link_sealed(const Node& target, const Node& directory,
                                          std::string_view name);
  /// Checks that a name may move between two directories.
  [[nodiscard]] Result<void> allow_rename(const Node& from, const Node& to) const;

  NodeTable& nodes_;
  const NodeAttributes& attributes_;
  VersionDirectory& versions_;
  SealedRemovals& removals_;
  HandleLookup handles_;
};

}  // namespace varve::fs
