// SPDX-License-Identifier: Apache-2.0
// The objects known to the kernel: nodes by id, open files and directories by handle number.
#pragma once

#include <cstdint>
#include <memory>

#include "fs/handles.h"
#include "fs/node_id.h"
#include "fs/slot_table.h"
#include "varve/backup.h"
#include "varve/beside.h"
#include "varve/browse.h"
#include "varve/repository.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::fs {

/// The object with a node id.
struct Node {
  enum class Kind { kRoot, kSeries, kLatest, kBeside, kOpen, kSealed, kRemoved };
  Kind kind = Kind::kRoot;
  Slot* slot = nullptr;                   ///< Null for the root.
  std::shared_ptr<VersionWriter> writer;  ///< Version of kOpen.
  Ino ino = 0;                            ///< Inode in `writer` or `beside`.
  std::shared_ptr<BesideFiles> beside;    ///< Files of the series of kBeside.
  std::shared_ptr<VersionReader> reader;  ///< Version of kSealed.
  Rank rank = 0;                          ///< Entry in `reader`.

  [[nodiscard]] bool is_version_root() const {
    return (kind == Kind::kOpen && ino == kRootIno) || (kind == Kind::kSealed && rank == 0);
  }
};

/// Translates node ids to the series, versions and files of a repository. Thread-safe.
class NodeTable {
 public:
  /// Lifetime: `repository` must outlive the table.
  explicit NodeTable(Repository& repository) : repository_(repository) {}

  /// Makes kRootNodeId mean `node_id`. Must be called before the first request.
  void set_root(std::uint64_t node_id) { root_ = node_id; }
  /// Returns the node meant by kRootNodeId; kRootNodeId itself for the whole repository.
  [[nodiscard]] std::uint64_t root() const { return root_; }

  /// Returns the object with a node id.
  /// Errors: kStale for a removed node, or for a node unknown in the mount.
  [[nodiscard]] Result<Node> resolve(std::uint64_t node_id);
  /// Returns a file of an open version.
  /// Errors: as resolve(); kReadOnly in a sealed version; kNotFound for a removed directory;
  /// kUnsupported beside versions; kNotPermitted for the root or a series.
  [[nodiscard]] Result<Node> resolve_open(std::uint64_t node_id);
  /// Loads the series or version of a node id from a file handle; the handle may be older than the
  /// mount. Rejects ids outside the mount's root, since an NFS client may forge an id.
  /// Errors: kStale if nothing has the id.
  [[nodiscard]] Result<void> admit(std::uint64_t node_id);
  /// Handles the kernel's release of a node: a removed file is no longer kept.
  void forget(std::uint64_t node_id) noexcept;

  /// Returns the slot of a version, and loads the version's tree.
  [[nodiscard]] Result<Slot*> load_version(const SeriesInfo& series, const VersionInfo& info);

  /// Returns the series and versions known in the mount.
  [[nodiscard]] SlotTable& slots() { return slots_; }
  /// Returns the open files, and below the open directories, by handle number.
  [[nodiscard]] HandleTable<FileHandle>& files() { return files_; }
  [[nodiscard]] HandleTable<DirHandle>& directories() { return directories_; }

 private:
  Repository& repository_;
  SlotTable slots_;
  std::uint64_t root_ = kRootNodeId;
  HandleTable<FileHandle> files_;
  HandleTable<DirHandle> directories_;
};

}  // namespace varve::fs
