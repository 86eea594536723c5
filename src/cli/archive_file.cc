// SPDX-License-Identifier: Apache-2.0
#include "cli/archive_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/system_error.h"
#include "cli/command.h"
#include "varve/restore.h"

namespace varve::cli {
namespace {

Error already_exists(const std::string& path) {
  return {ErrorCode::kExists, path + " exists; --force replaces it"};
}

/// Returns this process's descriptor named by `path`, such as the shell's >(command).
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
  if (!fd.valid()) return base::system_error(path, errno);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return base::system_error(path, errno);
  if (S_ISREG(status.st_mode)) {
    return Error(ErrorCode::kExists, path + ": another program has just created this file");
  }
  return fd;
}

}  // namespace

ArchiveFile::ArchiveFile(std::string path, std::string temporary, base::UniqueFd fd, bool force)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(std::move(fd)), force_(force) {}

ArchiveFile::ArchiveFile(ArchiveFile&& other) noexcept
    : path_(other.path_),
      temporary_(std::exchange(other.temporary_, {})),
      fd_(std::move(other.fd_)),
      force_(other.force_) {}

ArchiveFile::~ArchiveFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Result<ArchiveFile> ArchiveFile::open(const std::string& path, bool force,
                                      const std::vector<std::string>& own_folders) {
  base::UniqueFd fd;
  std::string temporary;
  struct stat status {};
  const auto own = named_descriptor(path);
  if (!own) {
    VARVE_TRY(check_outside_repositories(path, PlaceKind::kFile, own_folders,
                                         "write the archive to a folder outside it"));
  }
  const bool exists = !own && ::lstat(path.c_str(), &status) == 0;
  if (own) {
    fd = base::UniqueFd(::fcntl(*own, F_DUPFD_CLOEXEC, 3));
    if (!fd.valid()) return base::system_error(path, errno);
  } else if (exists && S_ISLNK(status.st_mode)) {
    return Error(ErrorCode::kExists, path + " is a symbolic link; name the file itself");
  } else if (exists && !S_ISREG(status.st_mode)) {
    VARVE_TRY_ASSIGN(fd, open_special(path));
  } else if (exists && !force) {
    return already_exists(path);
  } else {
    // mkostemp() makes a new file of mode 0600.
    temporary = path + ".XXXXXX";
    fd = base::UniqueFd(::mkostemp(temporary.data(), O_CLOEXEC));
    if (!fd.valid()) return base::system_error(path, errno);
  }
  ArchiveFile archive(path, std::move(temporary), std::move(fd), force);
  if (::isatty(archive.fd()) == 1) {
    return usage_error("standard output is a terminal; write the archive to a file or a pipe");
  }
  return archive;
}

Result<void> ArchiveFile::finish() {
  // A pipe and some devices have no disk to sync to.
  if (::fsync(fd_.get()) != 0 && errno != EINVAL && errno != EROFS) {
    return base::system_error(path_, errno);
  }
  if (::close(fd_.release()) != 0) return base::system_error(path_, errno);
  return temporary_.empty() ? Result<void>() : rename();
}

Result<void> ArchiveFile::rename() {
  const unsigned flags = force_ ? 0 : RENAME_NOREPLACE;
  int done = ::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), flags);
  if (done != 0 && errno == EINVAL) {
    // Some file systems cannot refuse to replace a file.
    struct stat status {};
    if (::lstat(path_.c_str(), &status) == 0) return already_exists(path_);
    done = ::rename(temporary_.c_str(), path_.c_str());
  }
  if (done != 0 && errno == EEXIST) return already_exists(path_);
  if (done != 0) return base::system_error(path_, errno);
  temporary_.clear();
  auto folder = std::filesystem::path(path_).parent_path();
  if (folder.empty()) folder = ".";
  const base::UniqueFd parent(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (parent.valid() && ::fsync(parent.get()) != 0 && errno != EINVAL && errno != EROFS) {
    return base::system_error(folder.string(), errno);
  }
  return {};
}

}  // namespace varve::cli
