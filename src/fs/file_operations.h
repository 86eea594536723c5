// SPDX-License-Identifier: Apache-2.0
// The requests to open, write and close files of versions.
#pragma once

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fs/beside_names.h"
#include "fs/caller.h"
#include "fs/node_attributes.h"
#include "fs/node_table.h"
#include "fs/privileges.h"
#include "fs/read_operations.h"
#include "fs/reply.h"
#include "fs/version_changes.h"
#include "varve/result.h"

namespace varve::fs {

/// Answers requests for open files, except the requests of ReadOperations. Thread-safe.
class FileOperations {
 public:
  /// Parts of the mount used by the operations.
  struct Parts {
    NodeTable& nodes;
    const NodeAttributes& attributes;
    Privileges& privileges;
    VersionChanges& changes;
    BesideNames& beside;
    const ReadOperations& reads;
  };
  /// Lifetime: the parts must outlive the object.
  explicit FileOperations(const Parts& parts) : parts_(parts) {}

  /// Creates and opens a regular file.
  [[nodiscard]] Result<Reply> create(const Caller& caller, fuse_ino_t parent, std::string_view name,
                                     mode_t mode, const fuse_file_info& info);
  /// Opens a regular file.
  [[nodiscard]] Result<Reply> open(fuse_ino_t ino, const fuse_file_info& info);
  /// Writes all of `data`.
  [[nodiscard]] Result<Reply> write(const Caller& caller, fuse_ino_t ino, std::string_view data,
                                    off_t offset, const fuse_file_info& info);
  /// Handles close(2) of a descriptor.
  [[nodiscard]] Result<Reply> flush(const fuse_file_info& info);
  /// Handles the end of an open file.
  [[nodiscard]] Result<Reply> release(const fuse_file_info& info);
  /// Makes a file durable.
  [[nodiscard]] Result<Reply> fsync(const fuse_file_info& info);

  /// A part of a file.
  struct Extent {
    off_t offset;
    off_t bytes;
  };
  /// Allocates, zeroes or punches a part of a file. `mode` is the mode of fallocate(2).
  [[nodiscard]] Result<Reply> fallocate(int mode, const Extent& extent, const fuse_file_info& info);
  /// A position in an open file.
  struct Place {
    const fuse_file_info& info;
    off_t offset;
  };
  /// Shares the chunks of a range with another file of the series.
  [[nodiscard]] Result<Reply> copy_file_range(const Place& source, const Place& target,
                                              std::size_t bytes);

 private:
  /// Returns the reply to an open request, or the error.
  [[nodiscard]] Result<Reply> open_sealed(const Node& node, fuse_ino_t ino, fuse_file_info info);
  [[nodiscard]] Result<Reply> open_unsealed(const Node& node, fuse_file_info info);
  [[nodiscard]] Result<Reply> open_beside(const Node& node, fuse_file_info info);
  /// Creates and opens a file beside versions.
  [[nodiscard]] Result<Reply> create_beside(const Node& directory, std::string_view name,
                                            const NewFile& wanted, const fuse_file_info& info);

  const Parts parts_;
};

}  // namespace varve::fs
