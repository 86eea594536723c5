// SPDX-License-Identifier: Apache-2.0
#include "io/directory_root.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "io/file_system.h"

namespace varve::io {

namespace {

constexpr int kFolderFlags = O_PATH | O_DIRECTORY | O_CLOEXEC;

// The C library has no wrapper for openat2().
int open_beneath(int folder, const char* path) {
  open_how how{};
  how.flags = kFolderFlags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
  while (true) {
    const long fd = ::syscall(SYS_openat2, folder, path, &how, sizeof how);
    if (fd >= 0 || (errno != EINTR && errno != EAGAIN)) return static_cast<int>(fd);
  }
}

bool examine(int fd, struct statx& status) {
  return ::statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS | STATX_MNT_ID,
                 &status) == 0;
}

}  // namespace

std::optional<std::string> DirectoryRoot::present_path() const {
  if (!restricted()) return std::nullopt;
  std::error_code error;
  const auto link = fmt::format("/proc/self/fd/{}", root_.get());
  auto path = std::filesystem::read_symlink(link, error).string();
  // For a removed folder, the link names another path, which may belong to another folder.
  struct stat status {};
  if (error || ::stat(path.c_str(), &status) != 0) return std::nullopt;
  const bool same =
      status.st_ino == root_status_.stx_ino &&
      status.st_dev == makedev(root_status_.stx_dev_major, root_status_.stx_dev_minor);
  return same ? std::optional(std::move(path)) : std::nullopt;
}

Error DirectoryRoot::refused(int errno_value, const std::string& path) {
  switch (errno_value) {
    case ELOOP:
      return {ErrorCode::kCorrupt,
              path +
                  " is a symbolic link, or its path has one. Varve follows no symbolic link inside "
                  "a repository; replace the link by the file or folder itself"};
    case EXDEV:
      return {ErrorCode::kCorrupt,
              path + " is on another file system than its repository; unmount that file system"};
    default:
      return error_from_errno(errno_value, "cannot open " + path);
  }
}

Result<std::unique_ptr<DirectoryRoot>> DirectoryRoot::open(const std::string& path,
                                                           const RootOptions& options) {
  auto root = std::make_unique<DirectoryRoot>();
  root->root_ = base::UniqueFd(::open(path.c_str(), kFolderFlags));
  root->name_ = path;
  root->options_ = options;
  root->by_hand_ = options.walk_by_hand;
  if (!root->root_.valid() || !examine(root->root_.get(), root->root_status_)) {
    return error_from_errno(errno, "cannot open " + path);
  }
  VARVE_TRY(root->check_owner(root->root_status_, path));
  return root;
}

// Returns the part of `path` below the root: "" for the root itself, else "a/b/c".
Result<std::string> DirectoryRoot::below(const std::string& path) const {
  const Error outside(ErrorCode::kInvalid, path + " is outside of " + name_);
  std::string_view rest = path;
  if (!rest.starts_with(name_)) return outside;
  rest.remove_prefix(name_.size());
  if (!rest.empty() && rest.front() != '/' && !name_.ends_with('/')) return outside;
  std::string relative;
  while (!rest.empty()) {
    const auto part = rest.substr(0, rest.find('/'));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    if (part.empty() || part == ".") continue;
    if (part == "..") return outside;
    if (!relative.empty()) relative += '/';
    relative += part;
  }
  return relative;
}

Result<FolderEntry> DirectoryRoot::entry(const std::string& path) const {
  FolderEntry entry;
  if (!restricted()) {
    entry.folder = AT_FDCWD;
    entry.name = path;
    return entry;
  }
  VARVE_TRY_ASSIGN(const auto relative, below(path));
  const auto slash = relative.rfind('/');
  if (slash == std::string::npos) {
    entry.folder = root_.get();
    entry.name = relative.empty() ? "." : relative;
    return entry;
  }
  VARVE_TRY_ASSIGN(entry.owned, walk(relative.substr(0, slash)));
  entry.folder = entry.owned.get();
  entry.name = relative.substr(slash + 1);
  return entry;
}

Result<base::UniqueFd> DirectoryRoot::directory(const std::string& path) const {
  if (restricted()) {
    VARVE_TRY_ASSIGN(const auto relative, below(path));
    return walk(relative.empty() ? "." : relative);
  }
  base::UniqueFd fd(::open(path.c_str(), kFolderFlags));
  if (!fd.valid()) return error_from_errno(errno, "cannot open " + path);
  return fd;
}

Result<base::UniqueFd> DirectoryRoot::walk(const std::string& relative) const {
  base::UniqueFd fd(open_folder(relative));
  const std::string path = std::string(name_).append("/" + relative);
  if (!fd.valid()) return refused(errno, path);
  VARVE_TRY(check_folder(fd.get(), path));
  return fd;
}

int DirectoryRoot::open_folder(const std::string& relative) const {
  if (!by_hand_) {
    const int fd = open_beneath(root_.get(), relative.c_str());
    // The kernel is older, or a sandbox does not know the call.
    if (fd >= 0 || (errno != ENOSYS && errno != EPERM)) return fd;
    by_hand_ = true;
  }
  return open_by_hand(relative);
}

// Does the work of openat2(), one part of the path at a time. Each step starts from a descriptor,
// so exchanging a folder that the walk has passed has no effect.
int DirectoryRoot::open_by_hand(const std::string& relative) const {
  base::UniqueFd at(::openat(root_.get(), ".", kFolderFlags));
  for (std::size_t begin = 0; at.valid() && begin <= relative.size();) {
    const auto end = std::min(relative.find('/', begin), relative.size());
    const auto part = relative.substr(begin, end - begin);
    base::UniqueFd next(::openat(at.get(), part.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!next.valid()) return -1;
    struct statx status {};
    if (!examine(next.get(), status)) return -1;
    errno = S_ISLNK(status.stx_mode)    ? ELOOP
            : !S_ISDIR(status.stx_mode) ? ENOTDIR
            : is_mounted_over(status)   ? EXDEV
                                        : 0;
    if (errno != 0) return -1;
    at = std::move(next);
    begin = end + 1;
  }
  return at.release();
}

bool DirectoryRoot::is_mounted_over(const struct statx& status) const {
  // Files of an overlay have device numbers of their own, so a mount's id is the better sign.
  if ((status.stx_mask & root_status_.stx_mask & STATX_MNT_ID) != 0) {
    return status.stx_mnt_id != root_status_.stx_mnt_id;
  }
  return S_ISDIR(status.stx_mode) && (status.stx_dev_major != root_status_.stx_dev_major ||
                                      status.stx_dev_minor != root_status_.stx_dev_minor);
}

Result<void> DirectoryRoot::check_folder(int fd, const std::string& path) const {
  struct statx status {};
  if (!examine(fd, status)) return error_from_errno(errno, "cannot examine " + path);
  return check_owner(status, path);
}

Result<void> DirectoryRoot::check_owner(const struct statx& status, const std::string& path) const {
  if (options_.trust_owner) return {};
  // Each access to a file comes here, and the root's present path costs three system calls.
  const auto advice = [this] {
    return fmt::format(
        "; run the command as the repository's owner. If you trust all users that can write to "
        "it, set VARVE_TRUST={} (mount option: trust_owner)",
        present_path().value_or(name_));
  };
  if (status.stx_uid != 0 && status.stx_uid != ::geteuid()) {
    return Error(ErrorCode::kNotPermitted,
                 fmt::format("{} belongs to user {}, neither to you nor to root{}", path,
                             status.stx_uid, advice()));
  }
  if ((status.stx_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Error(
        ErrorCode::kNotPermitted,
        fmt::format("{} is writable by others: remove that permission with `chmod go-w` (on "
                    "exFAT, FAT or CIFS, mount with umask=077 or dir_mode=0700){}",
                    path, advice()));
  }
  return {};
}

Result<void> DirectoryRoot::check_file(int fd, const std::string& path, bool for_writing) const {
  struct statx status {};
  if (!examine(fd, status)) return error_from_errno(errno, "cannot examine " + path);
  if (!S_ISREG(status.stx_mode)) {
    return Error(ErrorCode::kCorrupt, path + " is not a regular file");
  }
  if (!restricted()) return {};
  if (is_mounted_over(status)) return refused(EXDEV, path);
  if (for_writing && status.stx_nlink > 1) {
    return Error(ErrorCode::kCorrupt,
                 path +
                     " has another name elsewhere (a hard link), so Varve does not write to it: "
                     "put a copy in its place");
  }
  return check_owner(status, path);
}

}  // namespace varve::io
