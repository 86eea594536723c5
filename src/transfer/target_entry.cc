// SPDX-License-Identifier: Apache-2.0
#include "transfer/target_entry.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "transfer/transfer_error.h"

namespace varve::transfer {
namespace {

constexpr std::uint64_t kCompareBytes = 1U << 20;

int open_resolved(int directory_fd, const char* name, int flags, std::uint64_t resolve) {
  struct open_how how {};
  how.flags = static_cast<std::uint64_t>(flags);
  how.resolve = resolve;
  const long fd = ::syscall(SYS_openat2, directory_fd, name, &how, sizeof how);
  if (fd >= 0 || errno != ENOSYS) return static_cast<int>(fd);
  // Before Linux 5.6. O_NOFOLLOW has the same effect here, because all names are single components.
  return ::openat(directory_fd, name, flags | O_NOFOLLOW);
}

}  // namespace

int open_beneath(int directory_fd, const char* name, int flags) {
  return open_resolved(directory_fd, name, flags, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
}

int open_in_same_mount(int directory_fd, const char* name, int flags) {
  return open_resolved(directory_fd, name, flags,
                       RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
}

Result<std::optional<struct stat>> stat_entry(int directory_fd, const std::string& name) {
  struct stat status {};
  if (::fstatat(directory_fd, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
    return std::optional<struct stat>(status);
  }
  if (errno == ENOENT) return std::optional<struct stat>();
  return system_error("stat", errno);
}

Result<bool> same_content(FileReader& source, int fd, std::uint64_t begin, std::uint64_t end,
                          const std::function<bool(std::uint64_t)>& advance) {
  const auto size = static_cast<std::size_t>(std::min(kCompareBytes, end - begin));
  const auto ours = std::make_unique_for_overwrite<std::byte[]>(size);
  const auto theirs = std::make_unique_for_overwrite<std::byte[]>(size);
  for (std::uint64_t at = begin; at < end;) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(size, end - at));
    const auto got = source.read(at, {ours.get(), n});
    if (!got || *got != n) return false;
    for (std::size_t have = 0; have < n;) {
      const ssize_t more =
          ::pread(fd, theirs.get() + have, n - have, static_cast<off_t>(at + have));
      if (more < 0 && errno == EINTR) continue;
      if (more <= 0) return false;
      have += static_cast<std::size_t>(more);
    }
    if (std::memcmp(ours.get(), theirs.get(), n) != 0) return false;
    if (!advance(n)) return Error(ErrorCode::kInterrupted, "interrupted");
    at += n;
  }
  return true;
}

}  // namespace varve::transfer
