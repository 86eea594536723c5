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

bool Caller::is_root_or_in_group(std::uint32_t gid) const {
  if (context_.uid == 0 || context_.gid == gid) return true;
  if (req_ == nullptr) return false;
  std::vector<gid_t> groups(64);
  int count = fuse_req_getgroups(req_, static_cast<int>(groups.size()), groups.data());
  if (count > static_cast<int>(groups.size())) {
    groups.resize(static_cast<std::size_t>(count));
    count = std::min(count, fuse_req_getgroups(req_, count, groups.data()));
  }
  if (count < 0) return false;
  groups.resize(static_cast<std::size_t>(count));
  return std::ranges::find(groups, gid) != groups.end();
}

bool Caller::is_administrator() const {
  std::ifstream status(fmt::format("/proc/{}/status", context_.pid));
  constexpr std::string_view kKey = "CapEff:";
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(kKey)) continue;
    const auto capabilities = std::strtoull(line.c_str() + kKey.size(), nullptr, 16);
    const bool has = ((capabilities >> CAP_SYS_ADMIN) & 1) != 0;
    // Root of a user namespace has all capabilities there, but another uid here.
    return has && context_.uid == 0;
  }
  return context_.uid == 0;
}

}  // namespace varve::fs
