// SPDX-License-Identifier: Apache-2.0
// Rights of the process that sent a request.
#pragma once

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>

#include <cstdint>

namespace varve::fs {

/// Returns true for root and for members of the group. These callers keep the set-group-ID bit of
/// the group's files where others lose it. Reads the caller's supplementary groups from /proc if
/// necessary.
[[nodiscard]] bool is_root_or_in_group(fuse_req_t req, std::uint32_t gid);

/// Returns true if the caller is root with the capability CAP_SYS_ADMIN according to /proc. Without
/// that information, returns true for root.
[[nodiscard]] bool is_administrator(fuse_req_t req);

}  // namespace varve::fs
