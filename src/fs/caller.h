// SPDX-License-Identifier: Apache-2.0
// The process that sent a request.
#pragma once

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>
#include <sys/types.h>

#include <cstdint>

namespace varve::fs {

/// The identity and the rights of the process that sent a request. Valid until the reply is sent.
class Caller {
 public:
  explicit Caller(fuse_req_t req) : req_(req), context_(*fuse_req_ctx(req)) {}
  /// Makes a caller without a request and without supplementary groups.
  explicit Caller(const fuse_ctx& context) : context_(context) {}

  [[nodiscard]] uid_t uid() const { return context_.uid; }
  [[nodiscard]] gid_t gid() const { return context_.gid; }
  [[nodiscard]] pid_t pid() const { return context_.pid; }
  [[nodiscard]] mode_t umask() const { return context_.umask; }

  /// Returns true for root and for members of the group. Root and members keep the set-group-ID bit
  /// of the group's files in cases where the bit is cleared for other callers. Reads the caller's
  /// supplementary groups from /proc if necessary.
  [[nodiscard]] bool is_root_or_in_group(std::uint32_t gid) const;

  /// Returns true if the caller is root with the capability CAP_SYS_ADMIN according to /proc.
  /// Without the information from /proc, returns true for root.
  [[nodiscard]] bool is_administrator() const;

 private:
  fuse_req_t req_ = nullptr;
  fuse_ctx context_;
};

}  // namespace varve::fs
