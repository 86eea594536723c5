// SPDX-License-Identifier: Apache-2.0
#include "transfer/source_listing.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "transfer/transfer_error.h"

namespace varve::transfer {

Result<std::vector<std::string>> list_names(int directory_fd) {
  // Opens a second descriptor, because closedir() closes the descriptor and reading moves the
  // position.
  const int fd = ::openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return system_error("open", errno);
  DIR* listing = ::fdopendir(fd);
  if (listing == nullptr) {
    const int reason = errno;
    ::close(fd);
    return system_error("fdopendir", reason);
  }
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(listing)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  const int reason = errno;
  ::closedir(listing);
  if (reason != 0) return system_error("readdir", reason);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace varve::transfer
