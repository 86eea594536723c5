// SPDX-License-Identifier: Apache-2.0
#include "io/posix_file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/unique_fd.h"

namespace varve::io {

namespace {

// A backup holds what only its owner may read.
constexpr mode_t kFileMode = 0600;
constexpr mode_t kDirectoryMode = 0700;

// Repeats a system call that a signal interrupted.
template <typename Call>
auto retried(Call call) {
  while (true) {
    const auto result = call();
    if (result != -1 || errno != EINTR) return result;
  }
}

// More is not fetched ahead in one go.
constexpr std::uint64_t kWillReadBytesMax = 64U << 20;

bool is_aligned(std::uint64_t n) { return n % kDirectAlignment == 0; }

class PosixFile final : public File {
 public:
  PosixFile(base::UniqueFd fd, std::string path, bool direct)
      : fd_(std::move(fd)), path_(std::move(path)), direct_(direct) {}

  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) override {
    VARVE_TRY(check_alignment(offset, out));
    std::size_t done = 0;
    while (done < out.size()) {
      const ssize_t n = retried([&] {
        return ::pread(fd_.get(), out.data() + done, out.size() - done,
                       static_cast<off_t>(offset + done));
      });
      if (n < 0) return failed(errno, "cannot read ");
      done += static_cast<std::size_t>(n);
      // A direct read goes on only at an aligned place; it stops elsewhere at the end alone.
      if (n == 0 || (direct_ && !is_aligned(done))) break;
    }
    return done;
  }

  Result<void> write_at(std::uint64_t offset, std::span<const std::byte> data) override {
    VARVE_TRY(check_alignment(offset, data));
    std::size_t done = 0;
    while (done < data.size()) {
      const ssize_t n = retried([&] {
        return ::pwrite(fd_.get(), data.data() + done, data.size() - done,
                        static_cast<off_t>(offset + done));
      });
      if (n < 0) return failed(errno, "cannot write ");
      auto step = static_cast<std::size_t>(n);
      // After a short direct write the torn block is written again.
      if (direct_) step -= step % kDirectAlignment;
      if (step == 0) return failed(ENOSPC, "cannot write ");
      done += step;
    }
    return {};
  }

  Result<void> sync() override {
    if (retried([&] { return ::fdatasync(fd_.get()); }) != 0) return failed(errno, "cannot sync ");
    return {};
  }

  Result<std::uint64_t> size() override {
    struct stat st {};
    if (::fstat(fd_.get(), &st) != 0) return failed(errno, "cannot examine ");
    return static_cast<std::uint64_t>(st.st_size);
  }

  Result<void> truncate(std::uint64_t bytes) override {
    if (retried([&] { return ::ftruncate(fd_.get(), static_cast<off_t>(bytes)); }) != 0) {
      return failed(errno, "cannot truncate ");
    }
    return {};
  }

  Result<std::uint64_t> seek_data(std::uint64_t offset) override { return seek(offset, SEEK_DATA); }
  Result<std::uint64_t> seek_hole(std::uint64_t offset) override { return seek(offset, SEEK_HOLE); }

  void will_read(std::uint64_t offset, std::uint64_t bytes) override {
    // The kernel takes no more of one advice than a request or its read-ahead may have (mm/
    // readahead.c, force_page_cache_ra), which is 512 KiB or more on most disks.
    constexpr std::uint64_t kStepBytes = 512U << 10;
    bytes = std::min(bytes, kWillReadBytesMax);
    for (std::uint64_t at = 0; at < bytes; at += kStepBytes) {
      ::posix_fadvise(fd_.get(), static_cast<off_t>(offset + at),
                      static_cast<off_t>(std::min(kStepBytes, bytes - at)), POSIX_FADV_WILLNEED);
    }
  }

  // cachestat(2), Linux 6.5. Neither it nor its structures are in the C library's headers yet.
  bool is_cached(std::uint64_t offset, std::uint64_t bytes) override {
    struct {
      std::uint64_t offset, length;
    } const range{offset, bytes};
    struct {
      std::uint64_t cached, dirty, writeback, evicted, recently_evicted;
    } pages{};
    constexpr long kCachestat = 451;  // On every architecture but Alpha.
    if (bytes == 0 || ::syscall(kCachestat, fd_.get(), &range, &pages, 0) != 0) return false;
    const std::uint64_t page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    return pages.cached == (offset + bytes - 1) / page - offset / page + 1;
  }

 private:
  Result<std::uint64_t> seek(std::uint64_t offset, int whence) {
    const off_t at = ::lseek(fd_.get(), static_cast<off_t>(offset), whence);
    if (at >= 0) return static_cast<std::uint64_t>(at);
    if (errno == ENXIO) {
      return Error(ErrorCode::kNotFound, path_ + ": nothing from that offset on", ENXIO);
    }
    return failed(errno, "cannot seek in ");
  }

  // Checked here, where buffered fall-backs would take anything, so that a caller's mistake
  // shows on every file system.
  Result<void> check_alignment(std::uint64_t offset, std::span<const std::byte> memory) const {
    if (direct_ && !(is_aligned(offset) && is_aligned(memory.size()) &&
                     is_aligned(reinterpret_cast<std::uintptr_t>(memory.data())))) {
      return Error(ErrorCode::kInvalid, path_ + ": direct access that is not aligned", EINVAL);
    }
    return {};
  }

  [[nodiscard]] Error failed(int errno_value, const char* doing) const {
    return error_from_errno(errno_value, doing + path_);
  }

  const base::UniqueFd fd_;
  const std::string path_;
  const bool direct_;
};

class PosixLock final : public FileLock {
 public:
  explicit PosixLock(base::UniqueFd fd) : fd_(std::move(fd)) {}

 private:
  const base::UniqueFd fd_;  // Closing it gives the lock back.
};

// Nothing is written through a link: a repository from elsewhere could lead to another's files.
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
  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override {
    const int flags = flags_of(mode);
    const bool direct = (flags & O_DIRECT) != 0;
    auto opened = open_regular(path, flags);
    // Some file systems have no direct access; then the page cache does the work.
    if (!opened && direct && opened.error().errno_value() == EINVAL) {
      opened = open_regular(path, flags & ~O_DIRECT);
    }
    VARVE_TRY_ASSIGN(auto fd, std::move(opened));
    // Advice: where it is not taken, the reads are slower, and that is all.
    if (mode == OpenMode::kReadPlanned) ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_RANDOM);
    return std::unique_ptr<File>(std::make_unique<PosixFile>(std::move(fd), path, direct));
  }

  Result<void> make_directory(const std::string& path) override {
    if (::mkdir(path.c_str(), kDirectoryMode) == 0) return {};
    const int mkdir_errno = errno;
    struct stat st {};
    if (mkdir_errno == EEXIST && ::stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode)) return {};
    return error_from_errno(mkdir_errno, "cannot make the directory " + path);
  }

  Result<void> remove(const std::string& path) override {
    if (::unlink(path.c_str()) == 0) return {};
    // POSIX lets unlink of a directory say EPERM; Linux says EISDIR.
    if (errno == EISDIR || errno == EPERM) {
      const int unlink_errno = errno;
      if (::rmdir(path.c_str()) == 0) return {};
      if (errno == ENOTDIR) errno = unlink_errno;
    }
    return error_from_errno(errno, "cannot remove " + path);
  }

  Result<void> remove_tree(const std::string& path) override {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    if (error) return error_from_errno(error.value(), "cannot remove the tree " + path);
    return {};
  }

  Result<void> rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) == 0) return {};
    return error_from_errno(errno, "cannot rename " + from + " to " + to);
  }

  Result<void> sync_directory(const std::string& path) override {
    const base::UniqueFd fd(open_retried(path, O_RDONLY | O_DIRECTORY));
    if (!fd.valid() || retried([&] { return ::fsync(fd.get()); }) != 0) {
      return error_from_errno(errno, "cannot sync the directory " + path);
    }
    return {};
  }

  Result<std::vector<std::string>> list(const std::string& path) override {
    const std::unique_ptr<DIR, CloseDirectory> directory(::opendir(path.c_str()));
    if (!directory) return error_from_errno(errno, "cannot list " + path);
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
    struct stat st {};
    if (::lstat(path.c_str(), &st) == 0) return true;
    if (errno == ENOENT || errno == ENOTDIR) return false;
    return error_from_errno(errno, "cannot examine " + path);
  }

  Result<std::uint64_t> tree_bytes(const std::string& path) override {
    struct stat st {};
    if (::lstat(path.c_str(), &st) != 0) return error_from_errno(errno, "cannot examine " + path);
    if (!S_ISDIR(st.st_mode)) {
      return S_ISREG(st.st_mode) ? static_cast<std::uint64_t>(st.st_size) : std::uint64_t{0};
    }
    VARVE_TRY_ASSIGN(const auto names, list(path));
    std::uint64_t sum = 0;
    for (const auto& name : names) {
      auto bytes = tree_bytes(path + "/" + name);
      // It may be removed while we look.
      if (!bytes && bytes.error().code() == ErrorCode::kNotFound) continue;
      VARVE_TRY_ASSIGN(const std::uint64_t part, std::move(bytes));
      sum += part;
    }
    return sum;
  }

  Result<SpaceInfo> space(const std::string& path) override {
    struct statvfs st {};
    if (retried([&] { return ::statvfs(path.c_str(), &st); }) != 0) {
      return error_from_errno(errno, "cannot ask for the free space of " + path);
    }
    SpaceInfo info;
    info.block_bytes = st.f_frsize;
    info.blocks = st.f_blocks;
    info.blocks_free = st.f_bfree;
    info.blocks_available = st.f_bavail;
    info.files = st.f_files;
    info.files_free = st.f_ffree;
    return info;
  }

  Result<std::unique_ptr<FileLock>> lock(const std::string& path) override {
    VARVE_TRY_ASSIGN(auto fd, open_regular(path, O_RDWR | O_CREAT | O_NOFOLLOW));
    if (retried([&] { return ::flock(fd.get(), LOCK_EX | LOCK_NB); }) != 0) {
      if (errno == EWOULDBLOCK) {
        return Error(ErrorCode::kLocked, path + " is locked by another process", EWOULDBLOCK);
      }
      return error_from_errno(errno, "cannot lock " + path);
    }
    return std::unique_ptr<FileLock>(std::make_unique<PosixLock>(std::move(fd)));
  }

 private:
  static int open_retried(const std::string& path, int flags) {
    return retried([&] { return ::open(path.c_str(), flags | O_CLOEXEC, kFileMode); });
  }

  // What stands in a file's place may be a pipe, whose opening would wait for the other end, a
  // device, or a socket (ENXIO).
  static Result<base::UniqueFd> open_regular(const std::string& path, int flags) {
    base::UniqueFd fd(open_retried(path, flags | O_NONBLOCK | O_NOCTTY));
    const bool is_none = !fd.valid() && errno == ENXIO;
    if (!fd.valid() && !is_none) return error_from_errno(errno, "cannot open " + path);
    struct stat status {};
    if (!is_none && ::fstat(fd.get(), &status) != 0) {
      return error_from_errno(errno, "cannot examine " + path);
    }
    if (!S_ISREG(status.st_mode)) {
      return Error(ErrorCode::kCorrupt, path + " is no regular file", EIO);
    }
    // Of regular files all that can be set is this; each call waits again.
    if (::fcntl(fd.get(), F_SETFL, flags & (O_DIRECT | O_APPEND)) != 0) {
      return error_from_errno(errno, "cannot open " + path);
    }
    return fd;
  }
};

}  // namespace

std::unique_ptr<FileSystem> make_posix_file_system() { return std::make_unique<PosixFileSystem>(); }

}  // namespace varve::io
