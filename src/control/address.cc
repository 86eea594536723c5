// SPDX-License-Identifier: Apache-2.0
#include "control/address.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "base/system_error.h"

namespace varve::control {
namespace {

/// Number of abstract names to try. Another process can take a name to block the daemon; spare
/// names defeat that.
constexpr int kAbstractNames = 4;

}  // namespace

Result<Folder> open_folder(const std::string& path) {
  Folder folder;
  folder.fd = base::UniqueFd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder.fd.valid() || ::fstat(folder.fd.get(), &folder.status) != 0) {
    return base::io_error(path, errno);
  }
  return folder;
}

std::string socket_folder(uid_t uid) {
  return uid == 0 ? "/run/varve" : fmt::format("/run/user/{}/varve", uid);
}

Result<base::UniqueFd> open_socket_folder(uid_t uid, bool make) {
  const std::string path = socket_folder(uid);
  if (make && ::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return base::io_error(path, errno);
  }
  base::UniqueFd folder(::open(path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!folder.valid() || ::fstat(folder.get(), &status) != 0) return base::io_error(path, errno);
  if (status.st_uid != uid || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Error(ErrorCode::kNotPermitted,
                 fmt::format("{} must belong to user {} alone", path, uid));
  }
  return folder;
}

std::string socket_name(const struct stat& repository) {
  return fmt::format("{:x}-{:x}.sock", static_cast<std::uint64_t>(repository.st_dev),
                     static_cast<std::uint64_t>(repository.st_ino));
}

std::vector<std::string> abstract_names(const struct stat& repository, uid_t uid) {
  std::vector<std::string> names;
  for (int i = 0; i < kAbstractNames; ++i) {
    names.push_back(fmt::format("varve/{}/{}/{}", uid, socket_name(repository), i));
  }
  return names;
}

}  // namespace varve::control
