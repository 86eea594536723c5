// SPDX-License-Identifier: Apache-2.0
#include "fs/remount.h"

#include <fmt/core.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "base/system_error.h"
#include "control/mounted_path.h"
#include "control/own_attribute.h"

namespace varve::fs {
namespace {

struct Flag {
  std::string_view name;
  unsigned long clear;
  unsigned long set;
};
constexpr unsigned long kAtime = MS_NOATIME | MS_RELATIME | MS_STRICTATIME;
constexpr Flag kFlags[] = {
    {"ro", 0, MS_RDONLY},
    {"rw", MS_RDONLY, 0},
    {"nosuid", 0, MS_NOSUID},
    {"suid", MS_NOSUID, 0},
    {"nodev", 0, MS_NODEV},
    {"dev", MS_NODEV, 0},
    {"noexec", 0, MS_NOEXEC},
    {"exec", MS_NOEXEC, 0},
    {"noatime", kAtime, MS_NOATIME},
    {"relatime", kAtime, MS_RELATIME},
    {"strictatime", kAtime, MS_STRICTATIME},
    {"nodiratime", 0, MS_NODIRATIME},
    {"diratime", MS_NODIRATIME, 0},
};

/// Calls `visit` for each option of a list.
template <typename Visit>
void for_each_option(std::string_view list, const Visit& visit) {
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    visit(list.substr(0, comma));
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  }
}

unsigned long present_flags(const struct statvfs& values) {
  unsigned long flags = 0;
  if ((values.f_flag & ST_RDONLY) != 0) flags |= MS_RDONLY;
  if ((values.f_flag & ST_NOSUID) != 0) flags |= MS_NOSUID;
  if ((values.f_flag & ST_NODEV) != 0) flags |= MS_NODEV;
  if ((values.f_flag & ST_NOEXEC) != 0) flags |= MS_NOEXEC;
  if ((values.f_flag & ST_NOATIME) != 0) flags |= MS_NOATIME;
  if ((values.f_flag & ST_NODIRATIME) != 0) flags |= MS_NODIRATIME;
  if ((values.f_flag & ST_RELATIME) != 0) flags |= MS_RELATIME;
  return flags;
}

bool daemon_is_read_only(const std::string& directory) {
  const auto access = control::own_attribute(directory, "user.varve.access");
  return access.error == 0 && access.value == "ro";
}

}  // namespace

bool asks_for_remount(std::string_view list) {
  bool found = false;
  for_each_option(list, [&](std::string_view option) { found = found || option == "remount"; });
  return found;
}

Result<void> remount(const std::string& directory, std::string_view list) {
  const auto mounted = control::find_mounted_on(directory);
  if (!mounted) return mounted.error();
  struct statvfs values {};
  if (::statvfs(directory.c_str(), &values) != 0) {
    return base::system_error(directory, errno);
  }
  unsigned long flags = present_flags(values);
  for_each_option(list, [&](std::string_view option) {
    for (const Flag& flag : kFlags) {
      if (option == flag.name) flags = (flags & ~flag.clear) | flag.set;
    }
  });
  if ((flags & MS_RDONLY) == 0 && daemon_is_read_only(directory)) {
    return Error(ErrorCode::kInvalid,
                 directory +
                     " was mounted read-only, so its daemon cannot write; unmount it and "
                     "mount it again");
  }
  if (::mount("none", directory.c_str(), nullptr, MS_REMOUNT | flags, nullptr) == 0) return {};
  if (errno == EBUSY) {
    return Error(ErrorCode::kBusy, directory + ": files are open for writing; close them first");
  }
  return base::system_error(directory, errno);
}

}  // namespace varve::fs
