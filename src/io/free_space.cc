// SPDX-License-Identifier: Apache-2.0
#include "io/free_space.h"

#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <limits>
#include <vector>

#include "base/coding.h"
#include "base/unique_fd.h"
#include "io/retried.h"

namespace varve::io {

namespace {

// Free space below which Btrfs is synced before counting. Varve writes less between two commits of
// Btrfs, which happen every 30 seconds.
constexpr std::uint64_t kNearBytes = std::uint64_t{4} << 30;
constexpr std::size_t kAnswerBytes = 4096;
constexpr std::size_t kGroupsMax = 64;

struct Item {
  btrfs_ioctl_search_header key{};
  const std::byte* value = nullptr;
  [[nodiscard]] std::uint64_t number(std::size_t offset) const {
    return base::load_le<std::uint64_t>(value + offset);
  }
};

// Calls `visit` for items of the quota tree between two keys, as many as fit into one answer.
// Returns false if the kernel refuses.
template <typename Visit>
bool search(int directory, std::uint64_t object, std::uint32_t type, std::uint64_t offset_min,
            std::uint64_t offset_max, const Visit& visit) {
  std::array<std::uint64_t, (sizeof(btrfs_ioctl_search_args_v2) + kAnswerBytes) / 8> memory{};
  auto* const args = reinterpret_cast<btrfs_ioctl_search_args_v2*>(memory.data());
  args->key.tree_id = BTRFS_QUOTA_TREE_OBJECTID;
  args->key.min_objectid = args->key.max_objectid = object;
  args->key.min_type = args->key.max_type = type;
  args->key.min_offset = offset_min;
  args->key.max_offset = offset_max;
  args->key.max_transid = std::numeric_limits<std::uint64_t>::max();
  args->key.nr_items = kGroupsMax;
  args->buf_size = kAnswerBytes;
  if (::ioctl(directory, BTRFS_IOC_TREE_SEARCH_V2, args) != 0) return false;
  const auto* at = reinterpret_cast<const std::byte*>(args->buf);
  for (std::uint32_t i = 0; i < args->key.nr_items; ++i) {
    Item item;
    std::memcpy(&item.key, at, sizeof item.key);
    item.value = at + sizeof item.key;
    at = item.value + item.key.len;
    visit(item);
  }
  return true;
}

// Returns the free room of one group; all bytes without a limit.
std::uint64_t room_of(int directory, std::uint64_t group) {
  constexpr std::size_t kReferred = 8;    // In an information item: bytes referred to.
  constexpr std::size_t kExclusive = 24;  // In an information item: exclusive bytes.
  constexpr std::size_t kReferredMax = 8;
  constexpr std::size_t kExclusiveMax = 16;
  constexpr std::size_t kItemBytes = 40;  // Both items.
  std::uint64_t room = std::numeric_limits<std::uint64_t>::max();
  std::optional<std::uint64_t> referred;
  std::optional<std::uint64_t> exclusive;
  search(directory, 0, BTRFS_QGROUP_LIMIT_KEY, group, group, [&](const Item& item) {
    if (item.key.len < kItemBytes) return;
    const auto flags = item.number(0);
    if ((flags & BTRFS_QGROUP_LIMIT_MAX_RFER) != 0) referred = item.number(kReferredMax);
    if ((flags & BTRFS_QGROUP_LIMIT_MAX_EXCL) != 0) exclusive = item.number(kExclusiveMax);
  });
  if (!referred && !exclusive) return room;
  search(directory, 0, BTRFS_QGROUP_INFO_KEY, group, group, [&](const Item& item) {
    if (item.key.len < kItemBytes) return;
    const auto left = [](std::uint64_t limit, std::uint64_t used) {
      return limit - std::min(limit, used);
    };
    if (referred) room = std::min(room, left(*referred, item.number(kReferred)));
    if (exclusive) room = std::min(room, left(*exclusive, item.number(kExclusive)));
  });
  return room;
}

// Returns the groups that count the subvolume: the subvolume's own group, and the groups above.
std::vector<std::uint64_t> groups_of(int directory, std::uint64_t subvolume) {
  std::vector<std::uint64_t> groups{subvolume};
  for (std::size_t i = 0; i < groups.size() && groups.size() < kGroupsMax; ++i) {
    const auto level = [](std::uint64_t group) { return group >> BTRFS_QGROUP_LEVEL_SHIFT; };
    const auto member = groups[i];
    search(directory, member, BTRFS_QGROUP_RELATION_KEY, 0,
           std::numeric_limits<std::uint64_t>::max(), [&](const Item& item) {
             const auto other = item.key.offset;
             const bool is_above = level(other) > level(member);
             if (is_above && std::ranges::find(groups, other) == groups.end()) {
               groups.push_back(other);
             }
           });
  }
  return groups;
}

// Returns the free bytes in the quota groups of the subvolume.
std::optional<std::uint64_t> quota_room(int directory) {
  btrfs_ioctl_ino_lookup_args subvolume{};
  subvolume.objectid = BTRFS_FIRST_FREE_OBJECTID;
  if (::ioctl(directory, BTRFS_IOC_INO_LOOKUP, &subvolume) != 0) return std::nullopt;
  constexpr auto kNoLimit = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t room = kNoLimit;
  for (const auto group : groups_of(directory, subvolume.treeid)) {
    room = std::min(room, room_of(directory, group));
  }
  return room == kNoLimit ? std::nullopt : std::optional(room);
}

// A file system without statfs(2) reports no blocks at all, which does not mean a full disk.
// The space counts as practically unlimited.
SpaceInfo info_of(const struct statvfs& st) {
  SpaceInfo info;
  info.block_bytes = st.f_frsize;
  info.blocks = st.f_blocks;
  info.blocks_free = st.f_bfree;
  info.blocks_available = st.f_bavail;
  info.files = st.f_files;
  info.files_free = st.f_ffree;
  if (st.f_blocks == 0) {
    constexpr std::uint64_t kUnknownBlocks = std::uint64_t{1} << 40;
    info.block_bytes = 4096;
    info.blocks = info.blocks_free = info.blocks_available = kUnknownBlocks;
  }
  return info;
}

Result<SpaceInfo> counted_space(int directory, const std::string& path) {
  struct statvfs st {};
  if (retried([&] { return ::fstatvfs(directory, &st); }) != 0) {
    return error_from_errno(errno, "cannot read the free space of " + path);
  }
  return info_of(st);
}

bool is_btrfs(int directory) {
  struct statfs disk {};
  return ::fstatfs(directory, &disk) == 0 &&
         static_cast<unsigned long>(disk.f_type) == BTRFS_SUPER_MAGIC;
}

}  // namespace

Result<SpaceInfo> space_of(int directory, const std::string& path) {
  VARVE_TRY_ASSIGN(auto info, counted_space(directory, path));
  if (!is_btrfs(directory)) return info;
  // The directory may be open as a mere place (O_PATH).
  const base::UniqueFd readable(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!readable.valid()) return info;
  for (const bool is_synced : {false, true}) {
    if (is_synced) {
      VARVE_TRY_ASSIGN(info, counted_space(directory, path));
    }
    if (const auto room = quota_room(readable.get())) {
      info.blocks_available = std::min(info.blocks_available, *room / info.block_bytes);
    }
    if (is_synced || info.available_bytes() >= kNearBytes) break;
    ::syncfs(readable.get());
  }
  return info;
}

bool lacks_room(int file, std::uint64_t bytes) {
  struct stat status {};
  if (::fstat(file, &status) != 0) return false;
  if (::fallocate(file, FALLOC_FL_KEEP_SIZE, status.st_size, static_cast<off_t>(bytes)) != 0) {
    if (errno == ENOSPC || errno == EDQUOT) return true;
    struct statvfs disk {};  // The file system cannot allocate.
    return ::fstatvfs(file, &disk) == 0 && disk.f_blocks != 0 &&
           disk.f_bavail * disk.f_frsize < bytes;
  }
  // Also frees the blocks beyond the end. A failure leaves the blocks to the next change of the
  // file.
  static_cast<void>(!::ftruncate(file, status.st_size));
  return false;
}

}  // namespace varve::io
