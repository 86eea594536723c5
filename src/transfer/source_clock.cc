// SPDX-License-Identifier: Apache-2.0
#include "transfer/source_clock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace varve::transfer {

namespace {

// File systems that set the ctime, from the local machine's clock, at every change of a file, and
// also at a change through a mapping once the changed pages were written. Files of other file
// systems are read each time: tmpfs, and overlayfs above tmpfs, do not set the ctime for a mapped
// page a second time; FAT and FUSE file systems may keep the ctime; read-only images have the times
// chosen by the maker of the image.
constexpr std::array<std::uint32_t, 6> kClockedSystems = {
    0x0000EF53,  // ext2, ext3, ext4
    0x58465342,  // XFS
    0x9123683E,  // Btrfs
    0xF2F52010,  // F2FS
    0x2FC12FC1,  // ZFS
    0xCA451A4E,  // bcachefs
};
constexpr std::uint32_t kNfsSystem = 0x6969;
// The clock of an NFS server may differ from the local machine's clock.
constexpr std::int64_t kServerSkewSeconds = 24 * 3600;

// The kernel writes changed pages after 30 seconds, unless configured otherwise.
constexpr std::int64_t kWrittenAfterSeconds = 120;

// From linux/mman.h of Linux 6.5. The system's headers may be older.
constexpr long kCachestatCall = 451;
struct CachestatRange {
  std::uint64_t offset;
  std::uint64_t bytes;  // 0: up to the end.
};
struct Cachestat {
  std::uint64_t cached;
  std::uint64_t dirty;
  std::uint64_t under_writeback;
  std::uint64_t evicted;
  std::uint64_t recently_evicted;
};

// Returns whether a page of the file waits to be written; nullopt if the kernel cannot tell.
std::optional<bool> has_changed_pages(int fd) {
  CachestatRange range{};
  Cachestat pages{};
  if (::syscall(kCachestatCall, fd, &range, &pages, 0) != 0) return std::nullopt;
  return pages.dirty != 0;
}

}  // namespace

Timestamp kernel_time() {
  struct timespec now {};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return {now.tv_sec, static_cast<std::uint32_t>(now.tv_nsec)};
}

std::optional<std::int64_t> SourceClock::margin_of(int directory_fd, dev_t device) {
  if (const auto known = margins_.find(device); known != margins_.end()) return known->second;
  std::optional<std::int64_t> margin;
  struct stat directory {};
  struct statfs system {};
  // A file with another device than the file's directory is a separate mount.
  if (::fstat(directory_fd, &directory) == 0 && directory.st_dev == device &&
      ::fstatfs(directory_fd, &system) == 0) {
    const auto type = static_cast<std::uint32_t>(system.f_type);
    if (std::ranges::find(kClockedSystems, type) != kClockedSystems.end()) margin = settle_s_;
    if (type == kNfsSystem) margin = kServerSkewSeconds;
  } else {
    return std::nullopt;
  }
  margins_[device] = margin;
  return margin;
}

bool SourceClock::is_settled(int directory_fd, dev_t device, const Timestamp& mtime,
                             const Timestamp& ctime) {
  const auto margin = margin_of(directory_fd, device);
  if (!margin) return false;
  const Timestamp before{started_at_.seconds - *margin, started_at_.nanoseconds};
  return mtime < before && ctime < before;
}

// A page changed through a shared mapping stays writable until the writing of the page begins. So a
// file without changed pages gets a new ctime at the next change.
bool SourceClock::settle_mappings(int fd, const Timestamp& ctime) const {
  auto changed = has_changed_pages(fd);
  if (changed && *changed && ::sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE) == 0) {
    changed = has_changed_pages(fd);
  }
  if (changed) return !*changed;
  return ctime.seconds < started_at_.seconds - kWrittenAfterSeconds;
}

}  // namespace varve::transfer
