// SPDX-License-Identifier: Apache-2.0
// The requests for attributes and link targets.
#pragma once

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>
#include <sys/stat.h>

#include <cstdint>

#include "fs/caller.h"
#include "fs/node_attributes.h"
#include "fs/node_table.h"
#include "fs/privileges.h"
#include "fs/reply.h"
#include "fs/sealed_removals.h"
#include "fs/version_directory.h"
#include "varve/backup.h"
#include "varve/result.h"

namespace varve::fs {

/// Answers requests that read or change attributes. Thread-safe.
class AttributeOperations {
 public:
  /// Lifetime: the arguments must outlive the object.
  AttributeOperations(NodeTable& nodes, const NodeAttributes& attributes,
                      VersionDirectory& versions, Privileges& privileges, SealedRemovals& removals)
      : nodes_(nodes),
        attributes_(attributes),
        versions_(versions),
        privileges_(privileges),
        removals_(removals) {}

  /// Returns the attributes of a node.
  [[nodiscard]] Result<Reply> getattr(fuse_ino_t ino);
  /// Changes the members of `values` that `to_set` (FUSE_SET_ATTR_*) selects.
  [[nodiscard]] Result<Reply> setattr(const Caller& caller, fuse_ino_t ino,
                                      const struct stat& values, int to_set);
  /// Returns the target of a symbolic link or of `latest`.
  [[nodiscard]] Result<Reply> readlink(fuse_ino_t ino);

 private:
  /// Changes the attributes of a removed series or version.
  [[nodiscard]] static Reply set_removed(Slot& slot, const AttributeChange& change);
  /// Updates the access ACL after chmod(2), the reverse of XattrOperations::set_access_acl().
  [[nodiscard]] static Result<void> update_acl(const Node& node, std::uint32_t mode);

  NodeTable& nodes_;
  const NodeAttributes& attributes_;
  VersionDirectory& versions_;
  Privileges& privileges_;
  SealedRemovals& removals_;
};

}  // namespace varve::fs
