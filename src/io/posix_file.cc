// SPDX-License-Identifier: Apache-2.0
#include "io/posix_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "io/retried.h"

namespace varve::io {

namespace {

// Maximum number of bytes prefetched by one call.
constexpr std::uint64_t kWillReadBytesMax = 64U << 20;

class PosixFile final : public File {
 public:
  PosixFile(base::UniqueFd fd, std::string path, bool direct)
      : fd_(std::move(fd)), path_(std::move(path)), direct_(direct) {}

  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) override {
    VARVE_TRY(check_alignment(offset, out));
    std::size_t done = 0;
    bool buffered = false;
    while (done < out.size()) {
      const ssize_t n = retried([&] {
        return ::pread(fd_.get(), out.data() + done, out.size() - done,
                       static_cast<off_t>(offset + done));
      });
      if (n < 0 && errno == EINVAL && !std::exchange(buffered, true) && leave_direct()) continue;
      if (n < 0) return failed(errno, "cannot read ");
      done += static_cast<std::size_t>(n);
      // A direct read can continue only at an aligned place, and stops elsewhere only at the end of
      // the file.
      if (n == 0 || (direct_ && !is_aligned(done))) break;
    }
    return done;
  }

  Result<void> write_at(std::uint64_t offset, std::span<const std::byte> data) override {
    VARVE_TRY(check_alignment(offset, data));
    std::size_t done = 0;
    bool buffered = false;
    while (done < data.size()) {
      const ssize_t n = retried([&] {
        return ::pwrite(fd_.get(), data.data() + done, data.size() - done,
                        static_cast<off_t>(offset + done));
      });
      if (n < 0 && errno == EINVAL && !std::exchange(buffered, true) && leave_direct()) continue;
      if (n < 0) return failed(errno, "cannot write ");
      auto step = static_cast<std::size_t>(n);
      // After a short direct write, the loop writes the torn block again.
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
    // For each advice, the kernel fetches at most the size of a request or of its read-ahead
    // (force_page_cache_ra in mm/readahead.c): 512 KiB or more on most disks.
    constexpr std::uint64_t kStepBytes = 512U << 10;
    bytes = std::min(bytes, kWillReadBytesMax);
    for (std::uint64_t at = 0; at < bytes; at += kStepBytes) {
      ::posix_fadvise(fd_.get(), static_cast<off_t>(offset + at),
                      static_cast<off_t>(std::min(kStepBytes, bytes - at)), POSIX_FADV_WILLNEED);
    }
  }

  // cachestat(2), Linux 6.5. The C library's headers have neither the call nor the structures yet.
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
      return Error(ErrorCode::kPastEnd,
                   path_ + ": the file has neither data nor a hole from that offset on");
    }
    return failed(errno, "cannot seek in ");
  }

  // Some file systems accept O_DIRECT and then refuse every access, or need another alignment.
  // Turns O_DIRECT off, so that all threads repeat a refused access through the page cache.
  bool leave_direct() {
    if (!direct_) return false;
    const int flags = ::fcntl(fd_.get(), F_GETFL);
    return flags >= 0 && ::fcntl(fd_.get(), F_SETFL, flags & ~O_DIRECT) == 0;
  }

  // Checks the alignment here, because a buffered fall-back would accept anything. So a caller's
  // mistake shows on every file system.
  Result<void> check_alignment(std::uint64_t offset, std::span<const std::byte> memory) const {
    if (direct_ && !(is_aligned(offset) && is_aligned(memory.size()) &&
                     is_aligned(reinterpret_cast<std::uintptr_t>(memory.data())))) {
      return Error(ErrorCode::kInvalid, path_ + ": direct access must be aligned to 4096 bytes");
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

}  // namespace

std::unique_ptr<File> make_posix_file(base::UniqueFd fd, std::string path, bool direct) {
  return std::make_unique<PosixFile>(std::move(fd), std::move(path), direct);
}

}  // namespace varve::io
