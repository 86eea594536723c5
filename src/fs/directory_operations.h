// SPDX-License-Identifier: Apache-2.0
// The requests for listings of directories.
#pragma once

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "fs/buffer_pool.h"
#include "fs/handles.h"
#include "fs/node_attributes.h"
#include "fs/node_table.h"
#include "fs/reply.h"
#include "fs/sealed_removals.h"
#include "fs/version_directory.h"
#include "varve/result.h"

namespace varve::fs {

/// Answers requests for open directories. Thread-safe.
class DirectoryOperations {
 public:
  /// Parts of the mount used by the operations.
  struct Parts {
    NodeTable& nodes;
    const NodeAttributes& attributes;
    VersionDirectory& versions;
    SealedRemovals& removals;
    BufferPool& buffers;
  };
  /// Lifetime: the parts must outlive the object.
  explicit DirectoryOperations(const Parts& parts) : parts_(parts) {}

  /// Opens a directory.
  [[nodiscard]] Result<Reply> opendir(fuse_ino_t ino, const fuse_file_info& info);
  /// A part of a listing, as requested by the kernel.
  struct Page {
    std::size_t bytes_max;
    off_t offset;
    bool plus;  ///< With attributes: readdirplus.
  };
  /// Lists entries. libfuse needs `req` to encode the entries.
  [[nodiscard]] Result<Reply> readdir(fuse_req_t req, const Page& page, const fuse_file_info& info);
  /// Handles the end of an open directory.
  [[nodiscard]] Result<Reply> releasedir(const fuse_file_info& info);
  /// Makes the version of a directory durable.
  [[nodiscard]] Result<Reply> fsyncdir(fuse_ino_t ino);

 private:
  class Encoder;
  [[nodiscard]] Result<void> list(const Node& node, DirHandle& handle, std::uint64_t begin,
                                  Encoder& page);
  [[nodiscard]] Result<std::uint64_t> parent_st_ino(const Node& node);
  [[nodiscard]] Result<void> list_open(const Node& node, DirHandle& handle, std::uint64_t after,
                                       Encoder& page);
  [[nodiscard]] Result<void> list_sealed(const Node& node, DirHandle& handle, std::uint64_t after,
                                         Encoder& page);
  [[nodiscard]] Result<void> list_upper(const Node& node, DirHandle& handle, std::uint64_t offset,
                                        Encoder& page);

  const Parts parts_;
};

}  // namespace varve::fs
