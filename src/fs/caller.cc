// SPDX-License-Identifier: Apache-2.0
#include "fs/caller.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace varve::fs {

bool is_root_or_in_group(fuse_req_t req, std::uint32_t gid) {
  const fuse_ctx* caller = fuse_req_ctx(req);
  if (caller->uid == 0 || caller->gid == gid) return true;
  std::vector<gid_t> groups(64);
  int count = fuse_req_getgroups(req, static_cast<int>(groups.size()), groups.data());
  if (count > static_cast<int>(groups.size())) {
    groups.resize(static_cast<std::size_t>(count));
    count = std::min(count, fuse_req_getgroups(req, count, groups.data()));
  }
  if (count < 0) return false;
  groups.resize(static_cast<std::size_t>(count));
  return std::ranges::find(groups, gid) != groups.end();
}

}  // namespace varve::fs
