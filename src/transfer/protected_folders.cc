// SPDX-License-Identifier: Apache-2.0
#include "transfer/protected_folders.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/mount_table.h"
#include "base/unique_fd.h"
#include "transfer/repository_data.h"
#include "transfer/source_listing.h"
#include "transfer/transfer_error.h"
#include "varve/restore.h"

namespace varve {
namespace transfer {
namespace {

using base::UniqueFd;

constexpr int kPathFlags = O_PATH | O_DIRECTORY | O_CLOEXEC;

// The superblock of a repository, and the superblock's copy.
constexpr std::array<const char*, 2> kRepositoryNames{"varve.repo", "varve.keys"};
// Varve's memory of repositories has a file for each, whose name is the repository's id.
constexpr std::size_t kIdDigits = 32;
constexpr std::string_view kMemoryPrefix = "varve-sequence ";
// The path of a mount's root in the repository has a part for the series and a part for the
// version.
constexpr std::size_t kVersionParts = 2;

bool is_id(std::string_view name) {
  return name.size() == kIdDigits &&
         name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// Returns whether the directory is Varve's memory of repositories.
bool is_memory(int directory_fd) {
  struct stat lock {};
  if (::fstatat(directory_fd, "lock", &lock, AT_SYMLINK_NOFOLLOW) != 0) return false;
  const auto names = list_names(directory_fd);
  if (!names) return false;
  return std::ranges::any_of(*names, [&](const std::string& name) {
    if (!is_id(name)) return false;
    const UniqueFd fd(
        ::openat(directory_fd, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    std::array<char, kMemoryPrefix.size()> head{};
    return fd.valid() &&
           ::pread(fd.get(), head.data(), head.size(), 0) == static_cast<ssize_t>(head.size()) &&
           std::string_view(head.data(), head.size()) == kMemoryPrefix;
  });
}

/// Returns whether the directory has the superblock of a repository.
bool is_repository(int directory_fd) {
  return std::ranges::any_of(kRepositoryNames, [&](const char* name) {
    struct stat status {};
    return ::fstatat(directory_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG(status.st_mode);
  });
}

/// Returns whether a stranger may have put the superblock into a directory shared by all users.
bool is_shared_folder(int directory_fd) {
  struct stat folder {};
  if (::fstat(directory_fd, &folder) != 0 || (folder.st_mode & S_ISVTX) == 0) return false;
  return std::ranges::all_of(kRepositoryNames, [&](const char* name) {
    struct stat status {};
    return ::fstatat(directory_fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
           (status.st_uid != folder.st_uid && status.st_uid != ::geteuid());
  });
}

/// Returns the repository path shown by a Varve mount, if the directory is the root of the mount.
std::optional<std::string> root_of_mount(int directory_fd) {
  // O_PATH descriptors have no attributes.
  const UniqueFd fd(::openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct statfs system {};
  if (!fd.valid() || ::fstatfs(fd.get(), &system) != 0 || system.f_type != FUSE_SUPER_MAGIC) {
    return std::nullopt;
  }
  std::array<char, 4096> value{};
  if (::fgetxattr(fd.get(), "user.varve.repository", value.data(), value.size()) < 0) {
    return std::nullopt;
  }
  const ssize_t bytes = ::fgetxattr(fd.get(), "user.varve.root", value.data(), value.size());
  return std::string(value.data(), static_cast<std::size_t>(std::max<ssize_t>(bytes, 0)));
}

std::size_t count_parts(const std::string& path) {
  return path.empty() ? 0 : 1 + static_cast<std::size_t>(std::ranges::count(path, '/'));
}

std::string name_of(int directory_fd) {
  std::error_code error;
  const auto path =
      std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(directory_fd), error);
  return error ? std::string("a folder above it") : path.string();
}

std::optional<std::pair<dev_t, ino_t>> key_of(const std::filesystem::path& path, bool follows) {
  struct stat status {};
  if (::fstatat(AT_FDCWD, path.c_str(), &status, follows ? 0 : AT_SYMLINK_NOFOLLOW) != 0) {
    return std::nullopt;
  }
  return std::pair(status.st_dev, status.st_ino);
}

// Returns the paths at which other mounts show the root directory of a mount, together with folders
// above this directory: the mount that shows most of the file system first.
std::vector<std::string> other_places(const std::vector<base::MountEntry>& mounts,
                                      std::uint64_t mount) {
  const auto own =
      std::ranges::find(mounts, static_cast<std::int64_t>(mount), &base::MountEntry::id);
  if (own == mounts.end() || own->root == "/") return {};
  std::vector<std::pair<std::size_t, std::string>> places;  // With the length of the mount's root.
  for (const auto& other : mounts) {
    if (other.device != own->device) continue;
    const auto above = other.root == "/" ? std::string() : other.root;
    if (above == own->root || !own->root.starts_with(above + "/")) continue;
    places.emplace_back(above.size(), other.mount_point + own->root.substr(above.size()));
  }
  std::ranges::stable_sort(places, {}, &std::pair<std::size_t, std::string>::first);
  std::vector<std::string> paths;
  for (auto& [length, path] : places) paths.push_back(std::move(path));
  return paths;
}

// Opens the root directory of a mount at another path, from which `..` leads to the folders above
// this directory in the file system. Returns an invalid descriptor if no mount of this process
// shows these folders.
UniqueFd open_elsewhere(const FolderIdentity& root) {
  for (const auto& path : other_places(base::read_mount_table(), root.mount)) {
    UniqueFd fd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd.valid()) continue;
    // Another mount may hide the directory, or the directory may have been renamed.
    const auto found = FolderIdentity::of(fd.get());
    if (found && found->device == root.device && found->inode == root.inode) return fd;
  }
  return {};
}

}  // namespace

Result<FolderIdentity> FolderIdentity::of(int directory_fd) {
  struct statx status {};
  if (::statx(directory_fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, STATX_INO | STATX_MNT_ID,
              &status) != 0) {
    return system_error("cannot examine a directory", errno);
  }
  FolderIdentity folder;
  folder.device = makedev(status.stx_dev_major, status.stx_dev_minor);
  folder.inode = status.stx_ino;
  if ((status.stx_mask & STATX_MNT_ID) != 0) folder.mount = status.stx_mnt_id;
  folder.is_mount_point = (status.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
  return folder;
}

bool is_repository_name(std::string_view name) {
  return std::ranges::find(kRepositoryNames, name) != kRepositoryNames.end();
}

bool is_mounted_file(int directory_fd, const std::string& name) {
  struct statx status {};
  return ::statx(directory_fd, name.c_str(), AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, 0, &status) ==
             0 &&
         (status.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

ProtectedFolders::ProtectedFolders(const std::vector<std::string>& own) : own_(own) {
  for (const std::string& path : own_) {
    if (path.empty()) continue;
    if (const auto key = key_of(path, true)) own_keys_.insert(*key);
  }
}

bool ProtectedFolders::is_in_own(const FolderIdentity& folder) const {
  const std::lock_guard lock(mutex_);
  if (!inner_keys_) {
    inner_keys_.emplace();
    for (const std::string& path : own_) {
      if (path.empty()) continue;
      std::error_code error;
      using Iterator = std::filesystem::recursive_directory_iterator;
      const auto options = std::filesystem::directory_options::skip_permission_denied;
      for (Iterator at(path, options, error); !error && at != Iterator(); at.increment(error)) {
        std::error_code ignored;
        if (!std::filesystem::is_directory(at->symlink_status(ignored))) continue;
        if (const auto key = key_of(at->path(), false)) inner_keys_->insert(*key);
      }
    }
  }
  return inner_keys_->contains({folder.device, folder.inode});
}

std::optional<std::string> ProtectedFolders::reason_to_keep(int directory_fd) const {
  const auto folder = FolderIdentity::of(directory_fd);
  if (!folder) return "cannot be examined: " + folder.error().message();
  if (own_keys_.contains({folder->device, folder->inode})) {
    return is_repository(directory_fd) ? "is the repository" : "has files of Varve itself";
  }
  if (is_repository(directory_fd)) return "is a Varve repository";
  if (is_memory(directory_fd)) return "is where Varve remembers repositories";
  if (!folder->is_mount_point) return std::nullopt;
  if (is_in_own(*folder)) return "is a folder of the repository, mounted there";
  if (root_of_mount(directory_fd)) return "is a mount of a Varve repository";
  return std::nullopt;
}

std::optional<std::string> ProtectedFolders::reason_not_to_remove(int directory_fd,
                                                                  dev_t device) const {
  if (auto reason = reason_to_keep(directory_fd)) return reason;
  if (has_repository_data(directory_fd)) return kRepositoryDataReason;
  const auto folder = FolderIdentity::of(directory_fd);
  if (!folder) return "cannot be examined: " + folder.error().message();
  if (folder->is_mount_point) return "is a mount point";
  if (folder->device != device) return "is on another file system";
  return std::nullopt;
}

Result<void> ProtectedFolders::check_above(int directory_fd, Place place, const std::string& path,
                                           const std::string& advice) const {
  UniqueFd at(::openat(directory_fd, ".", kPathFlags));
  if (!at.valid()) return {};  // The use of the directory returns the error.
  return check_from(std::move(at), 0, place, path, advice);
}

Result<void> ProtectedFolders::check_from(UniqueFd at, std::size_t below_mount, Place place,
                                          const std::string& path,
                                          const std::string& advice) const {
  VARVE_TRY_ASSIGN(FolderIdentity folder, FolderIdentity::of(at.get()));
  for (bool is_itself = true;; is_itself = false) {
    const bool may_be_one = is_itself && place == Place::kInside;
    auto reason = may_be_one ? std::nullopt : reason_to_keep(at.get());
    // Other users must not be able to block a directory shared by all.
    const bool is_own = own_keys_.contains({folder.device, folder.inode});
    if (reason && !is_itself && !is_own && is_shared_folder(at.get())) reason.reset();
    if (reason && folder.is_mount_point && !is_own && !is_repository(at.get())) {
      // A mounted open version is a place for files like any directory.
      const auto shown = root_of_mount(at.get());
      if (shown && count_parts(*shown) + below_mount >= kVersionParts) reason.reset();
    }
    if (reason) {
      const std::string where = name_of(at.get());
      return Error(ErrorCode::kInvalid,
                   path +
                       (is_repository(at.get()) ? " is in the repository " + where
                                                : " is in " + where + ", which " + *reason) +
                       "; " + advice);
    }
    if (auto elsewhere = folder.is_mount_point ? open_elsewhere(folder) : UniqueFd();
        elsewhere.valid()) {
      VARVE_TRY(check_from(std::move(elsewhere), below_mount, is_itself ? place : Place::kOutside,
                           path, advice));
    }
    UniqueFd above(::openat(at.get(), "..", kPathFlags));
    if (!above.valid()) return {};
    VARVE_TRY_ASSIGN(const FolderIdentity parent, FolderIdentity::of(above.get()));
    if (parent.device == folder.device && parent.inode == folder.inode &&
        parent.mount == folder.mount) {
      return {};
    }
    below_mount = folder.is_mount_point ? 0 : below_mount + 1;
    at = std::move(above);
    folder = parent;
  }
}

// Other users may put names into a directory with the sticky bit, and no repository has the bit.
Result<void> ProtectedFolders::check_data_above(int directory_fd, const std::string& path,
                                                const std::string& advice) const {
  UniqueFd at(::openat(directory_fd, ".", kPathFlags));
  std::optional<FolderIdentity> below;
  while (at.valid()) {
    VARVE_TRY_ASSIGN(const auto folder, FolderIdentity::of(at.get()));
    if (below && below->device == folder.device && below->inode == folder.inode &&
        below->mount == folder.mount) {
      break;
    }
    struct stat status {};
    const bool is_shared = ::fstat(at.get(), &status) == 0 && (status.st_mode & S_ISVTX) != 0;
    if (!is_shared && has_repository_data(at.get())) {
      return Error(ErrorCode::kInvalid,
                   path + ": " + name_of(at.get()) + " " + kRepositoryDataReason + "; " + advice);
    }
    below = folder;
    at = UniqueFd(::openat(at.get(), "..", kPathFlags));
  }
  return {};
}

}  // namespace transfer

Result<void> check_outside_repositories(const std::string& path, PlaceKind kind,
                                        const std::vector<std::string>& own,
                                        const std::string& advice) {
  const transfer::ProtectedFolders folders(own);
  std::error_code error;
  std::filesystem::path place = std::filesystem::absolute(path, error);
  auto where = kind == PlaceKind::kRepository ? transfer::ProtectedFolders::Place::kInside
                                              : transfer::ProtectedFolders::Place::kOutside;
  if (kind == PlaceKind::kFile) place = place.parent_path();
  while (!error) {
    const base::UniqueFd fd(::open(place.c_str(), transfer::kPathFlags));
    if (fd.valid()) return folders.check_above(fd.get(), where, path, advice);
    // A missing folder lies in the same place as the folder above.
    if (errno != ENOENT || place == place.parent_path()) return {};
    place = place.parent_path();
    where = transfer::ProtectedFolders::Place::kOutside;
  }
  return {};
}

}  // namespace varve
