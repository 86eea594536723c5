// SPDX-License-Identifier: Apache-2.0
// The requests for extended attributes.
#pragma once

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fs/caller.h"
#include "fs/file_stat.h"
#include "fs/kernel_notifier.h"
#include "fs/node_table.h"
#include "fs/privileges.h"
#include "fs/reply.h"
#include "fs/version_directory.h"
#include "varve/result.h"

namespace varve::fs {

/// Answers requests for extended attributes, POSIX access control lists included. Thread-safe.
class XattrOperations {
 public:
  /// The parts of the mount that the operations use.
  struct Parts {
    NodeTable& nodes;
    VersionDirectory& versions;
    Privileges& privileges;
    const KernelNotifier& kernel;
  };
  /// Lifetime: the parts must outlive the object.
  XattrOperations(const Parts& parts, const ShowOptions& show) : parts_(parts), show_(show) {}

  /// Stops answering requests for extended attributes: the kernel asks no more. With `all`, it
  /// does not ask to set or remove any either.
  void answer_nothing(bool all) { answers_ = all ? Answers::kNone : Answers::kNoReads; }
  /// Answers an ioctl(2): the attributes user.varve.* of the mount, for commands.
  [[nodiscard]] Result<Reply> ioctl(fuse_ino_t ino, unsigned request, std::string_view in,
                                    std::size_t out_bytes);
  /// Returns the value, or its size if `room` is 0.
  [[nodiscard]] Result<Reply> getxattr(fuse_ino_t ino, std::string_view name, std::size_t room);
  /// Returns the names, each with a terminating NUL, or their size if `room` is 0.
  [[nodiscard]] Result<Reply> listxattr(const Caller& caller, fuse_ino_t ino, std::size_t room);
  /// An attribute to set.
  struct NamedValue {
    std::string_view name;
    std::string_view value;
  };
  /// Sets an attribute. `flags` may be XATTR_CREATE or XATTR_REPLACE.
  [[nodiscard]] Result<Reply> setxattr(const Caller& caller, fuse_ino_t ino,
                                       const NamedValue& xattr, int flags);
  /// Removes an attribute.
  [[nodiscard]] Result<Reply> removexattr(fuse_ino_t ino, std::string_view name);

 private:
  [[nodiscard]] Result<void> set_access_acl(const Caller& caller, fuse_ino_t ino, const Node& node,
                                            std::string_view value);

  enum class Answers : std::uint8_t { kAll, kNoReads, kNone };

  const Parts parts_;
  const ShowOptions show_;
  std::atomic<Answers> answers_ = Answers::kAll;
};

}  // namespace varve::fs
