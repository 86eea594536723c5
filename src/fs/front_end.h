// SPDX-License-Identifier: Apache-2.0
// The mounted file system: answers the kernel's requests from a Repository.
#pragma once

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>

#include <atomic>
#include <string>

#include "fs/attribute_operations.h"
#include "fs/beside_names.h"
#include "fs/buffer_pool.h"
#include "fs/directory_operations.h"
#include "fs/file_operations.h"
#include "fs/file_stat.h"
#include "fs/kernel_notifier.h"
#include "fs/name_operations.h"
#include "fs/node_attributes.h"
#include "fs/node_table.h"
#include "fs/privileges.h"
#include "fs/read_operations.h"
#include "fs/reply.h"
#include "fs/responder.h"
#include "fs/sealed_removals.h"
#include "fs/version_changes.h"
#include "fs/version_commands.h"
#include "fs/version_directory.h"
#include "fs/xattr_operations.h"
#include "varve/replication.h"
#include "varve/repository.h"
#include "varve/result.h"

namespace varve::fs {

/// Holds the parts of a mount and connects the parts with a FUSE session. The groups of operations
/// compute the replies to requests; the Responder sends the replies. Thread-safe. Work that always
/// waits for the disk runs in a pool, except the reads of a single reader. Only a request with an
/// unexpected wait can therefore delay the loop; LoopPool handles the delay.
class FrontEnd {
 public:
  /// `show` selects how files appear. Lifetime: `repository` must outlive the FrontEnd.
  FrontEnd(Repository& repository, const ShowOptions& show);
  FrontEnd(const FrontEnd&) = delete;
  FrontEnd& operator=(const FrontEnd&) = delete;

  /// Returns the table for fuse_session_new(), whose user data must be a FrontEnd*.
  static const fuse_lowlevel_ops& operations();
  /// Connects the FrontEnd to a session mounted at `mount_point`. Must be called before the loop
  /// starts.
  void attach(fuse_session* session, std::string mount_point);
  /// Runs the queued work, then releases all objects of the repository. Must be called after the
  /// loop.
  void shut_down();

  /// Negotiates the features of the connection.
  void init(fuse_conn_info* connection);
  /// Lets the kernel keep `latest` in a read-only mount: each change is followed by a call of
  /// forget_latest(). Must be called before the loop starts.
  void keep_latest() { attributes_.keep_latest(); }
  /// Makes the kernel ask for `latest` of each series again. Thread-safe.
  void forget_latest();
  /// Stops answering requests for extended attributes if the mount shows only one sealed version,
  /// and the version has no extended attributes. Searches for attributes before returning, or in
  /// the background for a large version.
  void drop_needless_xattr_requests();
  /// Returns whether the mount refuses changes, because another folder writes to the repository in
  /// the object store. May ask the store first, as learn_fence().
  [[nodiscard]] bool refuses_changes() const;
  /// The same for a directory's name in `parent`: of a series or a version, the store is asked.
  [[nodiscard]] bool refuses_changes_in(fuse_ino_t parent);
  /// Returns the space of the repository's file system.
  [[nodiscard]] Result<Reply> statfs();

  [[nodiscard]] NodeTable& nodes() { return nodes_; }
  [[nodiscard]] NameOperations& names() { return name_operations_; }
  [[nodiscard]] AttributeOperations& attributes() { return attribute_operations_; }
  [[nodiscard]] XattrOperations& xattrs() { return xattr_operations_; }
  [[nodiscard]] ReadOperations& reads() { return read_operations_; }
  [[nodiscard]] FileOperations& files() { return file_operations_; }
  [[nodiscard]] DirectoryOperations& directories() { return directory_operations_; }
  [[nodiscard]] Responder& responder() { return responder_; }

  /// Returns the series and versions: the root of the mount is set here, before attach().
  [[nodiscard]] VersionDirectory& versions() { return versions_; }
  /// Returns the changes requested by commands.
  [[nodiscard]] VersionCommands& commands() { return commands_; }

 private:
  void tune_read_ahead() const;

  Repository& repository_;
  std::string mount_point_;
  std::atomic<bool> ending_ = false;
  BufferPool buffers_;
  KernelNotifier kernel_;
  NodeTable nodes_;
  NodeAttributes attributes_;
  VersionChanges changes_;
  SealedRemovals removals_;
  BesideNames beside_;
  VersionDirectory versions_;
  VersionCommands commands_;
  Privileges privileges_;
  NameOperations name_operations_;
  AttributeOperations attribute_operations_;
  XattrOperations xattr_operations_;
  ReadOperations read_operations_;
  FileOperations file_operations_;
  DirectoryOperations directory_operations_;
  Responder responder_;  // Last, because the responder's threads use all members above.
};

}  // namespace varve::fs
