// SPDX-License-Identifier: Apache-2.0
#include "control/mount_holder.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>
#include <system_error>

#include "base/text_of_file.h"
#include "control/mount_table.h"

namespace varve::control {
namespace {

namespace fs = std::filesystem;

/// Returns the mount point of the file system in the mount table of a process; "" without one.
std::string mount_point_in(const fs::path& process, const MountEntry& mount) {
  const auto table = parse_mount_table(base::text_of_file(process / "mountinfo"));
  const auto entry = std::ranges::find_if(
      table, [&](const MountEntry& one) { return is_same_file_system(one, mount); });
  return entry == table.end() ? std::string() : entry->mount_point;
}

}  // namespace

bool is_same_file_system(const MountEntry& one, const MountEntry& other) {
  return one.device == other.device && one.type == other.type && one.source == other.source;
}

std::optional<MountHolder> find_mount_holder(const MountEntry& mount, std::int64_t daemon) {
  std::error_code failed;
  std::set<fs::path> seen{fs::read_symlink("/proc/self/ns/mnt", failed)};
  if (auto here = mount_point_in("/proc/self", mount); !here.empty()) {
    return MountHolder{.process = 0, .name = "", .mount_point = std::move(here)};
  }
  for (fs::directory_iterator at("/proc", failed), end; !failed && at != end;
       at.increment(failed)) {
    const std::string number = at->path().filename();
    std::int64_t process = 0;
    const char* const stop = number.data() + number.size();
    const auto read = std::from_chars(number.data(), stop, process);
    if (read.ec != std::errc() || read.ptr != stop || process == daemon) continue;
    std::error_code hidden;
    const auto space = fs::read_symlink(at->path() / "ns/mnt", hidden);
    if (hidden || !seen.insert(space).second) continue;
    auto there = mount_point_in(at->path(), mount);
    if (there.empty()) continue;
    auto name = base::text_of_file(at->path() / "comm");
    if (name.ends_with('\n')) name.pop_back();
    return MountHolder{process, std::move(name), std::move(there)};
  }
  return std::nullopt;
}

}  // namespace varve::control
