// SPDX-License-Identifier: Apache-2.0
// Who sent a request.
#pragma once

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>

#include <cstdint>

namespace varve::fs {

/// True for root and for members of the group: they keep the set-group-ID bit of its files
/// where others lose it. Asks /proc for the caller's further groups if it has to.
[[nodiscard]] bool is_root_or_in_group(fuse_req_t req, std::uint32_t gid);

/// True if the caller has the capability CAP_SYS_ADMIN, by /proc. Where that does not tell, root
/// has it.
[[nodiscard]] bool is_administrator(fuse_req_t req);

}  // namespace varve::fs
