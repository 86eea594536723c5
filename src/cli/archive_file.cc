// SPDX-License-Identifier: Apache-2.0
#include "cli/archive_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

namespace varve::cli {
namespace {

Error system_error(const std::string& path, int number) {
  const auto code = number == ENOSPC ? ErrorCode::kNoSpace : ErrorCode::kIo;
  return {code, path + ": " + std::generic_category().message(number), number};
}

/// Returns the descriptor of this process that `path` names, such as the shell's >(command).
std::optional<int> named_descriptor(std::string_view path) {
  constexpr std::string_view kFolder = "/dev/fd/";
  if (path == "-" || path == "/dev/stdout") return STDOUT_FILENO;
  if (!path.starts_with(kFolder)) return std::nullopt;
  path.remove_prefix(kFolder.size());
  int fd = -1;
  const auto [end, error] = std::from_chars(path.data(), path.data() + path.size(), fd);
  if (error != std::errc() || end != path.data() + path.size() || fd < 0) return std::nullopt;
  return fd;
}

/// Opens an existing FIFO or device.
Result<base::UniqueFd> open_special(const std::string& path) {
  base::UniqueFd fd(::open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY));
  if (!fd.valid()) return system_error(path, errno);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return system_error(path, errno);
  if (S_ISREG(status.st_mode)) {
    return Error(ErrorCode::kExists, path + ": another program has just made this file", EEXIST);
  }
  return fd;
}

}  // namespace

ArchiveFile::ArchiveFile(std::string path, base::UniqueFd fd, bool created)
    : path_(std::move(path)), fd_(std::move(fd)), remove_(created) {}

ArchiveFile::ArchiveFile(ArchiveFile&& other) noexcept
    : path_(other.path_), fd_(std::move(other.fd_)), remove_(std::exchange(other.remove_, false)) {}

ArchiveFile::~ArchiveFile() {
  if (remove_) ::unlink(path_.c_str());
}

Result<ArchiveFile> ArchiveFile::open(const std::string& path, bool force) {
  base::UniqueFd fd;
  bool created = false;
  struct stat status {};
  if (const auto own = named_descriptor(path)) {
    fd = base::UniqueFd(::fcntl(*own, F_DUPFD_CLOEXEC, 3));
    if (!fd.valid()) return system_error(path, errno);
  } else if (::lstat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    if (S_ISLNK(status.st_mode)) {
      return Error(ErrorCode::kExists, path + " is a symbolic link; name the file itself", ELOOP);
    }
    VARVE_TRY_ASSIGN(fd, open_special(path));
  } else {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    fd = base::UniqueFd(::open(path.c_str(), kFlags, 0600));
    if (!fd.valid() && errno == EEXIST && force) {
      // A new file replaces the old one: no other process has it open, and it has no other name.
      if (::unlink(path.c_str()) != 0) return system_error(path, errno);
      fd = base::UniqueFd(::open(path.c_str(), kFlags, 0600));
    }
    if (!fd.valid() && errno == EEXIST) {
      return Error(ErrorCode::kExists, path + " exists; --force replaces it", EEXIST);
    }
    if (!fd.valid()) return system_error(path, errno);
    created = true;
  }
  ArchiveFile archive(path, std::move(fd), created);
  if (::isatty(archive.fd()) == 1) {
    return Error(ErrorCode::kInvalid, "an archive is not written to a terminal");
  }
  return archive;
}

Result<void> ArchiveFile::finish() {
  // A pipe and some devices have no disk to sync to.
  if (::fsync(fd_.get()) != 0 && errno != EINVAL && errno != EROFS) {
    return system_error(path_, errno);
  }
  if (::close(fd_.release()) != 0) return system_error(path_, errno);
  remove_ = false;
  return {};
}

}  // namespace varve::cli
