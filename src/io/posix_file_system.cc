// SPDX-License-Identifier: Apache-2.0
#include "io/posix_file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "base/unique_fd.h"
#include "io/directory_root.h"
#include "io/free_space.h"
#include "io/posix_file.h"
#include "io/retried.h"

namespace varve::io {

namespace {

// A backup holds data that only its owner may read.
constexpr mode_t kFileMode = 0600;
constexpr mode_t kDirectoryMode = 0700;

class PosixLock final : public FileLock {
 public:
  explicit PosixLock(base::UniqueFd fd) : fd_(std::move(fd)) {}

 private:
  const base::UniqueFd fd_;  // Closing the descriptor releases the lock.
};

// Writes follow no link, because a forged repository could link to files outside.
int flags_of(OpenMode mode) {
  switch (mode) {
    case OpenMode::kRead:
    case OpenMode::kReadPlanned:
      return O_RDONLY;
    case OpenMode::kReadDirect:
      return O_RDONLY | O_DIRECT;
    case OpenMode::kReadWrite:
      return O_RDWR | O_CREAT | O_NOFOLLOW;
    case OpenMode::kWriteDirect:
      return O_RDWR | O_CREAT | O_NOFOLLOW | O_DIRECT;
    case OpenMode::kCreateNew:
      return O_RDWR | O_CREAT | O_EXCL;
  }
  return O_RDONLY;
}

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

class PosixFileSystem final : public FileSystem {
 public:
  explicit PosixFileSystem(std::unique_ptr<DirectoryRoot> root) : root_(std::move(root)) {}

  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override {
    VARVE_TRY_ASSIGN(auto fd, descriptor(path, mode));
    // Only advice: a failure makes reads slower and has no other effect.
    if (mode == OpenMode::kReadPlanned) ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_RANDOM);
    const bool direct = (flags_of(mode) & O_DIRECT) != 0;
    return make_posix_file(std::move(fd), path, direct);
  }

  Result<base::UniqueFd> descriptor(const std::string& path, OpenMode mode) override {
    const int flags = flags_of(mode);
    auto opened = open_regular(path, flags);
    // Some file systems have no direct access, and use the page cache.
    if (!opened && (flags & O_DIRECT) != 0 && opened.error().errno_value() == EINVAL) {
      opened = open_regular(path, flags & ~O_DIRECT);
    }
    return opened;
  }

  std::optional<std::string> root_path() override { return root_->present_path(); }

  Result<void> make_directory(const std::string& path) override {
    VARVE_TRY_ASSIGN(const auto at, root_->entry(path));
    if (::mkdirat(at.folder, at.name.c_str(), kDirectoryMode) == 0) return {};
    const int mkdir_errno = errno;
    struct stat st {};
    const int follow = root_->restricted() ? AT_SYMLINK_NOFOLLOW : 0;
    if (mkdir_errno == EEXIST && ::fstatat(at.folder, at.name.c_str(), &st, follow) == 0 &&
        S_ISDIR(st.st_mode)) {
      return {};
    }
    return error_from_errno(mkdir_errno, "cannot create the directory " + path);
  }

  Result<void> remove(const std::string& path) override {
    VARVE_TRY_ASSIGN(const auto at, root_->entry(path));
    if (::unlinkat(at.folder, at.name.c_str(), 0) == 0) return {};
    // POSIX lets unlink of a directory fail with EPERM; Linux fails with EISDIR.
    if (errno == EISDIR || errno == EPERM) {
      const int unlink_errno = errno;
      if (::unlinkat(at.folder, at.name.c_str(), AT_REMOVEDIR) == 0) return {};
      if (errno == ENOTDIR) errno = unlink_errno;
    }
    return error_from_errno(errno, "cannot remove " + path);
  }

  Result<void> rename(const std::string& from, const std::string& to) override {
    VARVE_TRY_ASSIGN(const auto source, root_->entry(from));
    VARVE_TRY_ASSIGN(const auto target, root_->entry(to));
    if (::renameat(source.folder, source.name.c_str(), target.folder, target.name.c_str()) == 0) {
      return {};
    }
    return error_from_errno(errno, "cannot rename " + from + " to " + to);
  }

  Result<void> sync_directory(const std::string& path) override {
    VARVE_TRY_ASSIGN(const auto fd, readable_directory(path, "cannot sync the directory "));
    if (retried([&] { return ::fsync(fd.get()); }) != 0) {
      return error_from_errno(errno, "cannot sync the directory " + path);
    }
    return {};
  }

  Result<std::vector<std::string>> list(const std::string& path) override {
    VARVE_TRY_ASSIGN(auto fd, readable_directory(path, "cannot list "));
    const std::unique_ptr<DIR, CloseDirectory> directory(::fdopendir(fd.get()));
    if (!directory) return error_from_errno(errno, "cannot list " + path);
    (void)fd.release();
    std::vector<std::string> names;
    while (true) {
      errno = 0;
      const dirent* entry = ::readdir(directory.get());
      if (entry == nullptr) break;
      std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(std::move(name));
    }
    if (errno != 0) return error_from_errno(errno, "cannot list " + path);
    std::sort(names.begin(), names.end());
    return names;
  }

  Result<bool> exists(const std::string& path) override {
    const auto at = root_->entry(path);
    struct stat st {};
    if (at && ::fstatat(at->folder, at->name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0) return true;
    const Error error = at ? error_from_errno(errno, "cannot examine " + path) : at.error();
    const bool absent =
        error.code() == ErrorCode::kNotFound || error.code() == ErrorCode::kNotDirectory;
    return absent ? Result<bool>(false) : error;
  }

  Result<std::uint64_t> tree_bytes(const std::string& path) override {
    struct stat st {};
    {
      VARVE_TRY_ASSIGN(const auto at, root_->entry(path));
      if (::fstatat(at.folder, at.name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
        return error_from_errno(errno, "cannot examine " + path);
      }
    }
    if (!S_ISDIR(st.st_mode)) {
      return S_ISREG(st.st_mode) ? static_cast<std::uint64_t>(st.st_size) : std::uint64_t{0};
    }
    VARVE_TRY_ASSIGN(const auto names, list(path));
    std::uint64_t sum = 0;
    for (const auto& name : names) {
      auto bytes = tree_bytes(path + "/" + name);
      // The file may be removed during the walk.
      if (!bytes && bytes.error().code() == ErrorCode::kNotFound) continue;
      VARVE_TRY_ASSIGN(const std::uint64_t part, std::move(bytes));
      sum += part;
    }
    return sum;
  }

  Result<SpaceInfo> space(const std::string& path) override {
    VARVE_TRY_ASSIGN(const auto fd, root_->directory(path));
    return space_of(fd.get(), path);
  }

  Result<std::unique_ptr<FileLock>> lock(const std::string& path) override {
    return lock_file(path, OpenMode::kReadWrite, LOCK_EX);
  }
  Result<std::unique_ptr<FileLock>> lock_shared(const std::string& path) override {
    return lock_file(path, OpenMode::kRead, LOCK_SH);
  }

 private:
  Result<std::unique_ptr<FileLock>> lock_file(const std::string& path, OpenMode mode, int how) {
    VARVE_TRY_ASSIGN(auto fd, descriptor(path, mode));
    if (retried([&] { return ::flock(fd.get(), how | LOCK_NB); }) != 0) {
      if (errno == EWOULDBLOCK) {
        return Error(ErrorCode::kLocked, path + " is locked by another process");
      }
      return error_from_errno(errno, "cannot lock " + path);
    }
    return std::unique_ptr<FileLock>(std::make_unique<PosixLock>(std::move(fd)));
  }

  Result<base::UniqueFd> readable_directory(const std::string& path, const char* doing) {
    VARVE_TRY_ASSIGN(const auto folder, root_->directory(path));
    base::UniqueFd fd(
        retried([&] { return ::openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
    if (!fd.valid()) return error_from_errno(errno, doing + path);
    return fd;
  }

  // Opens a regular file. O_NONBLOCK keeps open(2) from waiting if the path is a pipe instead. The
  // path may also be a device or a socket (ENXIO).
  Result<base::UniqueFd> open_regular(const std::string& path, int flags) {
    VARVE_TRY_ASSIGN(const auto at, root_->entry(path));
    if (root_->restricted()) flags |= O_NOFOLLOW;
    base::UniqueFd fd(retried([&] {
      return ::openat(at.folder, at.name.c_str(), flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
                      kFileMode);
    }));
    if (!fd.valid() && errno == ENXIO) {
      return Error(ErrorCode::kCorrupt, path + " is not a regular file");
    }
    if (!fd.valid()) {
      return root_->restricted() ? DirectoryRoot::refused(errno, path)
                                 : error_from_errno(errno, "cannot open " + path);
    }
    const bool for_writing = (flags & O_ACCMODE) != O_RDONLY;
    VARVE_TRY(root_->check_file(fd.get(), path, for_writing));
    // Clears O_NONBLOCK: each call waits again. A regular file has no other flags to set.
    if (::fcntl(fd.get(), F_SETFL, flags & (O_DIRECT | O_APPEND)) != 0) {
      return error_from_errno(errno, "cannot open " + path);
    }
    return fd;
  }

  const std::unique_ptr<DirectoryRoot> root_;
};

}  // namespace

std::unique_ptr<FileSystem> make_posix_file_system() {
  return std::make_unique<PosixFileSystem>(std::make_unique<DirectoryRoot>());
}

Result<std::unique_ptr<FileSystem>> open_root(const std::string& path, const RootOptions& options) {
  VARVE_TRY_ASSIGN(auto root, DirectoryRoot::open(path, options));
  return std::unique_ptr<FileSystem>(std::make_unique<PosixFileSystem>(std::move(root)));
}

}  // namespace varve::io
