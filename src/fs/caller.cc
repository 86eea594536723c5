// SPDX-License-Identifier: Apache-2.0
#include "fs/caller.h"

#include <fmt/core.h>
#include <linux/capability.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
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

bool is_administrator(fuse_req_t req) {
  const fuse_ctx* caller = fuse_req_ctx(req);
  std::ifstream status(fmt::format("/proc/{}/status", caller->pid));
  constexpr std::string_view kKey = "CapEff:";
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(kKey)) continue;
    const auto capabilities = std::strtoull(line.c_str() + kKey.size(), nullptr, 16);
    const bool has = ((capabilities >> CAP_SYS_ADMIN) & 1) != 0;
    // Root of a user namespace has all capabilities there, but another uid here.
    return has && caller->uid == 0;
  }
  return caller->uid == 0;
}

}  // namespace varve::fs
