// SPDX-License-Identifier: Apache-2.0
#include "transfer/source_file.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include "transfer/transfer_error.h"

namespace varve::transfer {
namespace {

bool equals(const struct timespec& a, const struct timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

}  // namespace

Result<base::UniqueFd> open_source_file(int directory_fd, const std::string& name,
                                        struct stat& status) {
  // O_NONBLOCK: a FIFO that has replaced the file must not block the importer. Only the owner and
  // root may use O_NOATIME.
  constexpr int kFlags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
  base::UniqueFd fd(::openat(directory_fd, name.c_str(), kFlags | O_NOATIME));
  if (!fd.valid() && errno == EPERM) {
    fd = base::UniqueFd(::openat(directory_fd, name.c_str(), kFlags));
  }
  if (!fd.valid()) return system_error("not stored", errno);
  if (::fstat(fd.get(), &status) != 0) return system_error("fstat", errno);
  if (!S_ISREG(status.st_mode)) {
    return Error(ErrorCode::kInvalid, "replaced by another kind of file during the import");
  }
  return fd;
}

Result<bool> has_changed(int fd, const struct stat& before) {
  struct stat now {};
  if (::fstat(fd, &now) != 0) return system_error("fstat", errno);
  if (now.st_size != before.st_size || !equals(now.st_mtim, before.st_mtim)) return true;
  return now.st_nlink != 0 && !equals(now.st_ctim, before.st_ctim);
}

}  // namespace varve::transfer
