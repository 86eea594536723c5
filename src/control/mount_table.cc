// SPDX-License-Identifier: Apache-2.0
#include "control/mount_table.h"

#include <algorithm>

namespace varve::control {
namespace {

/// Returns true if `path` is `directory` or is below it.
bool lies_in(std::string_view path, std::string_view directory) {
  if (directory == "/") return true;
  return path.starts_with(directory) &&
         (path.size() == directory.size() || path[directory.size()] == '/');
}

}  // namespace

const MountEntry* find_by_path(const std::vector<MountEntry>& table, std::string_view path) {
  const MountEntry* deepest = nullptr;
  for (const MountEntry& entry : table) {
    if (!lies_in(path, entry.mount_point)) continue;
    if (deepest == nullptr || entry.mount_point.size() >= deepest->mount_point.size()) {
      deepest = &entry;
    }
  }
  return deepest;
}

std::string path_in_file_system(const MountEntry& mount, std::string_view path) {
  std::string result = mount.root;
  if (mount.mount_point != "/") path.remove_prefix(std::min(mount.mount_point.size(), path.size()));
  if (!path.empty() && !path.starts_with('/')) result += '/';
  result += path;
  const std::size_t begin = result.find_first_not_of('/');
  if (begin == std::string::npos) return {};
  result.erase(0, begin);
  while (result.ends_with('/')) result.pop_back();
  return result;
}

}  // namespace varve::control
