// SPDX-License-Identifier: Apache-2.0
// File handles: name_to_handle_at(2), open_by_handle_at(2) and NFS.
//
// A handle contains a node id and a generation, and may be older than the mount. For an unknown
// node id, the kernel looks up the name "."; to connect a directory with the mount's root, the
// kernel looks up "..". Node ids follow from the series and the version, except for very late
// versions. Node ids are therefore the same in every mount (SlotTable).
#pragma once

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>

#include "fs/node_attributes.h"
#include "fs/node_table.h"
#include "fs/version_directory.h"
#include "varve/result.h"

namespace varve::fs {

/// Finds the nodes of file handles. Thread-safe.
class HandleLookup {
 public:
  /// Lifetime: the arguments must outlive the object.
  HandleLookup(NodeTable& nodes, const NodeAttributes& attributes, VersionDirectory& versions)
      : nodes_(nodes), attributes_(attributes), versions_(versions) {}

  /// Returns the node of a file handle, the target of a lookup of ".".
  /// Errors: kStale if there is none, as for look_up_parent().
  [[nodiscard]] Result<fuse_entry_param> look_up_self(fuse_ino_t ino);
  /// Returns the parent directory of a file handle's node, the target of a lookup of "..".
  [[nodiscard]] Result<fuse_entry_param> look_up_parent(fuse_ino_t ino);

 private:
  /// Returns the node of a file handle, after admitting the node id to the mount.
  [[nodiscard]] Result<Node> admitted(fuse_ino_t ino);
  [[nodiscard]] Result<fuse_entry_param> self_entry(fuse_ino_t ino);
  [[nodiscard]] Result<fuse_entry_param> parent_entry(fuse_ino_t ino);
  [[nodiscard]] Result<fuse_entry_param> parent_of(const Node& node);

  NodeTable& nodes_;
  const NodeAttributes& attributes_;
  VersionDirectory& versions_;
};

}  // namespace varve::fs
