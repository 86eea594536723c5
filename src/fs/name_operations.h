// SPDX-License-Identifier: Apache-2.0
// The requests to find, create, move and remove names.
#pragma once

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>
#include <sys/types.h>

#include <string>
#include <string_view>

#include "fs/beside_names.h"
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
/// files to the files' version. Thread-safe.
class NameOperations {
 public:
  /// Parts of the mount used by the operations.
  struct Parts {
    NodeTable& nodes;
    const NodeAttributes& attributes;
    VersionDirectory& versions;
    SealedRemovals& removals;
    BesideNames& beside;
  };
  /// Lifetime: the parts must outlive the object.
  explicit NameOperations(const Parts& parts)
      : nodes_(parts.nodes),
        attributes_(parts.attributes),
        versions_(parts.versions),
        removals_(parts.removals),
        beside_(parts.beside),
        handles_(nodes_, attributes_, versions_) {}

  /// Finds a name in a directory, or, for "." and "..", the node of a file handle.
  [[nodiscard]] Result<Reply> lookup(fuse_ino_t parent, std::string_view name);
  /// A directory entry to create.
  struct Wanted {
    std::string_view name;
    mode_t mode = 0;
    dev_t rdev = 0;           ///< Device number, for mknod(2).
    std::string_view target;  ///< Target of a symbolic link.
  };
  /// Creates a file of any kind in a version, or a regular file or a link beside versions.
  [[nodiscard]] Result<Reply> make_file(const Caller& caller, fuse_ino_t parent,
                                        const Wanted& wanted);
  /// Creates a series, a version, a directory in a version, or a folder beside versions.
  [[nodiscard]] Result<Reply> mkdir(const Caller& caller, fuse_ino_t parent, const Wanted& wanted);
  /// Gives a file another name. A file of a sealed version is cloned into the open version.
  [[nodiscard]] Result<Reply> link(fuse_ino_t ino, fuse_ino_t parent, std::string_view name);
  /// Removes a name of a file, but not of a directory.
  [[nodiscard]] Result<Reply> unlink(const Caller& caller, fuse_ino_t parent,
                                     std::string_view name);
  /// Removes a series, a version, an empty directory in a version, or a folder beside versions.
  [[nodiscard]] Result<Reply> rmdir(const Caller& caller, fuse_ino_t parent, std::string_view name);

  /// A name in a directory.
  struct Place {
    fuse_ino_t directory;
    std::string_view name;
  };
  /// Renames a version inside a series, or a file inside a version. `flags` are the flags of
  /// renameat2(2).
  [[nodiscard]] Result<Reply> rename(const Place& from, const Place& to, unsigned flags);

 private:
  [[nodiscard]] Result<Reply> remove_sealed(const Caller& caller, const Node& directory,
                                            std::string_view name, SealedRemovals::What what);
  [[nodiscard]] Result<Reply> link_sealed(const Node& target, const Node& directory,
                                          std::string_view name);
  /// Creates a file, a link or a folder beside versions.
  [[nodiscard]] Result<Reply> make_beside(const Caller& caller, const Node& directory,
                                          const Wanted& wanted);
  /// Renames in a series or in a folder beside the versions of a series.
  [[nodiscard]] Result<Reply> rename_in_series(const Node& from, std::string_view name,
                                               const Node& to, std::string_view new_name,
                                               unsigned flags);
  /// Checks that a name may move between two directories.
  [[nodiscard]] Result<void> allow_rename(const Node& from, const Node& to) const;

  NodeTable& nodes_;
  const NodeAttributes& attributes_;
  VersionDirectory& versions_;
  SealedRemovals& removals_;
  BesideNames& beside_;
  HandleLookup handles_;
};

}  // namespace varve::fs
