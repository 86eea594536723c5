// SPDX-License-Identifier: Apache-2.0
#include "meta/shared_memory.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "base/system_error.h"

namespace varve::meta {

namespace {

constexpr mode_t kFolderMode = 0700;
constexpr mode_t kFileMode = 0600;
constexpr mode_t kOfOthers = S_IRWXG | S_IRWXO;

Error unusable(const std::string& path, const std::string& why) {
  return {ErrorCode::kUnsupported, path + " " + why};
}
Error unusable(const std::string& path, int errno_value) {
  return unusable(path, std::string("cannot be used: ") + std::strerror(errno_value));
}

std::string folder_name(uid_t user) { return fmt::format("varve-{}", user); }

Result<base::UniqueFd> open_place(const MemoryPlace& place) {
  base::UniqueFd folder(::open(place.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat status {};
  struct statfs disk {};
  if (!folder.valid() || ::fstat(folder.get(), &status) != 0 ||
      ::fstatfs(folder.get(), &disk) != 0) {
    return unusable(place.path, errno);
  }
  if (static_cast<unsigned long>(disk.f_type) != TMPFS_MAGIC) {
    return unusable(place.path, "is not in memory (no tmpfs)");
  }
  const bool others_write = (status.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  if (status.st_uid != place.owner || (others_write && (status.st_mode & S_ISVTX) == 0)) {
    return unusable(place.path, "may be changed by other users");
  }
  return folder;
}

// Root creates the folder under a temporary name, so that the user finds the folder only once it
// belongs to the user.
Result<void> make_folder(int place, const std::string& path, uid_t user) {
  const auto name = folder_name(user);
  const uid_t caller = ::geteuid();
  if (caller == user) {
    if (::mkdirat(place, name.c_str(), kFolderMode) == 0 || errno == EEXIST) return {};
    return unusable(path, errno);
  }
  if (caller != 0) return unusable(path, "is missing, and only its user can make it");
  const auto unfinished = fmt::format("{}.{}", name, ::getpid());
  if (::mkdirat(place, unfinished.c_str(), kFolderMode) != 0) return unusable(path, errno);
  const base::UniqueFd made(
      ::openat(place, unfinished.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  int failure = 0;
  if (!made.valid() || ::fchown(made.get(), user, static_cast<gid_t>(-1)) != 0 ||
      ::renameat2(place, unfinished.c_str(), place, name.c_str(), RENAME_NOREPLACE) != 0) {
    failure = errno;
    ::unlinkat(place, unfinished.c_str(), AT_REMOVEDIR);
  }
  if (failure == 0 || failure == EEXIST) return {};
  return unusable(path, failure);
}

// Returns the user's folder in a place. Without `makes`, a missing folder is nullopt.
Result<std::optional<base::UniqueFd>> open_folder(const MemoryPlace& place, uid_t user,
                                                  bool makes) {
  const auto path = place.path + "/" + folder_name(user);
  VARVE_TRY_ASSIGN(const auto parent, open_place(place));
  const auto open = [&] {
    return base::UniqueFd(::openat(parent.get(), folder_name(user).c_str(),
                                   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  };
  auto folder = open();
  if (!folder.valid() && errno == ENOENT) {
    if (!makes) return std::optional<base::UniqueFd>();
    VARVE_TRY(make_folder(parent.get(), path, user));
    folder = open();
  }
  struct stat status {};
  if (!folder.valid() || ::fstat(folder.get(), &status) != 0) return unusable(path, errno);
  if (status.st_uid != user) {
    return unusable(
        path, fmt::format("belongs to user {} instead of {}: remove it", status.st_uid, user));
  }
  if ((status.st_mode & kOfOthers) != 0) {
    return unusable(path, "may be entered by other users: run chmod 700 on it");
  }
  return std::optional(std::move(folder));
}

Result<void> allocate(int file, const std::string& path, std::uint64_t bytes) {
  int rc = 0;
  do {
    rc = ::fallocate(file, 0, 0, static_cast<off_t>(bytes));
  } while (rc != 0 && errno == EINTR);
  if (rc != 0) return unusable(path, errno);
  return {};
}

// Returns the existing file `name`, or nullopt if the file is missing.
Result<std::optional<base::UniqueFd>> open_present(int folder, const std::string& name,
                                                   const std::string& path, uid_t user,
                                                   std::uint64_t bytes) {
  base::UniqueFd file(
      ::openat(folder, name.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file.valid() && errno == ENOENT) return std::optional<base::UniqueFd>();
  struct stat status {};
  if (!file.valid() || ::fstat(file.get(), &status) != 0) return unusable(path, errno);
  if (!S_ISREG(status.st_mode) || status.st_uid != user || status.st_nlink > 1 ||
      (status.st_mode & kOfOthers) != 0) {
    return unusable(path, "is no file that only its user can change: remove it");
  }
  VARVE_TRY(allocate(file.get(), path, bytes));
  return std::optional(std::move(file));
}

// Returns the new file, or nullopt if another process has created the name in the meantime. The
// file gets its name once complete.
Result<std::optional<base::UniqueFd>> make_file(int folder, const std::string& name,
                                                const std::string& path, uid_t user,
                                                std::uint64_t bytes) {
  base::UniqueFd file(::openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, kFileMode));
  if (!file.valid()) return unusable(path, errno);
  if (::geteuid() != user && ::fchown(file.get(), user, static_cast<gid_t>(-1)) != 0) {
    return unusable(path, errno);
  }
  VARVE_TRY(allocate(file.get(), path, bytes));
  const auto itself = fmt::format("/proc/self/fd/{}", file.get());
  if (::linkat(AT_FDCWD, itself.c_str(), folder, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
    return std::optional(std::move(file));
  }
  if (errno == EEXIST) return std::optional<base::UniqueFd>();
  return unusable(path, errno);
}

struct Found {
  base::UniqueFd file;
  base::UniqueFd folder;
  bool is_new = false;
};

// Returns the file in the place, or nullopt if the file is missing there and `makes` is false.
Result<std::optional<Found>> find_in(const MemoryPlace& place, uid_t user, const std::string& name,
                                     std::uint64_t bytes, bool makes) {
  const auto path = place.path + "/" + folder_name(user) + "/" + name;
  VARVE_TRY_ASSIGN(auto folder, open_folder(place, user, makes));
  if (!folder) return std::optional<Found>();
  constexpr int kTriesMax = 100;  // Another process may create and remove the name meanwhile.
  for (int tries = 0; tries < kTriesMax; ++tries) {
    VARVE_TRY_ASSIGN(auto present, open_present(folder->get(), name, path, user, bytes));
    if (present) return std::optional(Found{*std::move(present), *std::move(folder), false});
    if (!makes) return std::optional<Found>();
    VARVE_TRY_ASSIGN(auto made, make_file(folder->get(), name, path, user, bytes));
    if (made) return std::optional(Found{*std::move(made), *std::move(folder), true});
  }
  return unusable(path, "is created and removed again and again");
}

}  // namespace

std::vector<MemoryPlace> memory_places(uid_t user) {
  return {{"/dev/shm", 0}, {"/run", 0}, {fmt::format("/run/user/{}", user), user}};
}

Result<SharedFile> SharedFile::open(const std::vector<MemoryPlace>& places, uid_t user,
                                    const std::string& name, std::uint64_t bytes) {
  std::string reasons;
  for (const bool makes : {false, true}) {
    reasons.clear();
    for (const auto& place : places) {
      auto found = find_in(place, user, name, bytes, makes);
      if (!found) {
        reasons += (reasons.empty() ? "" : "; ") + found.error().message();
      } else if (*found) {
        auto& [file, folder, is_new] = **found;
        return SharedFile(std::move(file), std::move(folder), name, is_new);
      }
    }
  }
  return Error(ErrorCode::kUnsupported, reasons);
}

Result<SharedFile> SharedFile::make_private(std::uint64_t bytes) {
  base::UniqueFd file(::memfd_create("varve", MFD_CLOEXEC));
  if (!file.valid()) return base::system_error("cannot create a file in memory", errno);
  VARVE_TRY(allocate(file.get(), "a file in memory", bytes));
  return SharedFile(std::move(file), {}, {}, true);
}

bool SharedFile::has_its_name() const {
  struct stat named {};
  struct stat opened {};
  return folder_.valid() && ::fstat(descriptor(), &opened) == 0 &&
         ::fstatat(folder(), name_.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

void SharedFile::remove_name() const {
  if (has_its_name()) ::unlinkat(folder(), name_.c_str(), 0);
}

}  // namespace varve::meta
