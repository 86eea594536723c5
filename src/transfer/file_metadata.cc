// SPDX-License-Identifier: Apache-2.0
#include "transfer/file_metadata.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include "base/attribute_name.h"
#include "transfer/transfer_error.h"

namespace varve::transfer {
namespace {

/// Returns a path for calls on extended attributes, because Linux has setxattrat(2) only since
/// 6.13. The kernel follows the directory's link in /proc, but not a symlink `file.name` in the
/// directory.
std::string proc_path(const FileRef& file) {
  return "/proc/self/fd/" + std::to_string(file.directory_fd) + "/" + file.name;
}

int change_owner(const FileRef& file, uid_t uid, gid_t gid) {
  if (file.fd >= 0) return ::fchown(file.fd, uid, gid);
  return ::fchownat(file.directory_fd, file.name.c_str(), uid, gid, AT_SYMLINK_NOFOLLOW);
}

int change_mode(const FileRef& file, mode_t mode) {
  if (file.fd >= 0) return ::fchmod(file.fd, mode);
  return ::fchmodat(file.directory_fd, file.name.c_str(), mode, AT_SYMLINK_NOFOLLOW);
}

/// Returns S_ISGID if the file has the setgid bit, and otherwise 0.
mode_t setgid_bit(const FileRef& file) {
  struct stat status {};
  const int failed =
      file.fd >= 0 ? ::fstat(file.fd, &status)
                   : ::fstatat(file.directory_fd, file.name.c_str(), &status, AT_SYMLINK_NOFOLLOW);
  return failed == 0 ? status.st_mode & S_ISGID : 0;
}

int change_mtime(const FileRef& file, const Timestamp& mtime) {
  struct timespec times[2] = {};
  times[0].tv_nsec = UTIME_OMIT;
  times[1].tv_sec = static_cast<time_t>(mtime.seconds);
  times[1].tv_nsec = static_cast<long>(mtime.nanoseconds);
  if (file.fd >= 0) return ::futimens(file.fd, times);
  return ::utimensat(file.directory_fd, file.name.c_str(), times, AT_SYMLINK_NOFOLLOW);
}

int set_xattr(const FileRef& file, const Xattr& xattr) {
  const char* name = xattr.name.c_str();
  if (file.fd >= 0) return ::fsetxattr(file.fd, name, xattr.value.data(), xattr.value.size(), 0);
  return ::lsetxattr(proc_path(file).c_str(), name, xattr.value.data(), xattr.value.size(), 0);
}

ssize_t list_xattrs(const FileRef& file, char* out, std::size_t size) {
  if (file.fd >= 0) return ::flistxattr(file.fd, out, size);
  return ::llistxattr(proc_path(file).c_str(), out, size);
}

ssize_t get_xattr(const FileRef& file, const std::string& name, char* out, std::size_t size) {
  if (file.fd >= 0) return ::fgetxattr(file.fd, name.c_str(), out, size);
  return ::lgetxattr(proc_path(file).c_str(), name.c_str(), out, size);
}

/// Calls `fill(nullptr, 0)` for the size, then `fill(buffer, size)`. Repeats if the value grows
/// between the calls.
template <typename Fill>
Result<std::string> fill_buffer(const Fill& fill) {
  while (true) {
    const ssize_t size = fill(nullptr, 0);
    if (size < 0) return system_error("cannot read extended attributes", errno);
    if (size == 0) return std::string();
    std::string value(static_cast<std::size_t>(size), '\0');
    const ssize_t got = fill(value.data(), value.size());
    if (got >= 0) {
      value.resize(static_cast<std::size_t>(got));
      return value;
    }
    if (errno != ERANGE) return system_error("cannot read extended attributes", errno);
  }
}

/// Returns whether only root may set the attribute.
bool needs_root(const std::string& name) {
  return name.starts_with("trusted.") || name.starts_with("security.");
}

/// Sets owner and group. Returns whether the file has both.
bool set_owner(const FileRef& file, const Attributes& wanted, const std::string& path,
               ProblemList& problems) {
  if (wanted.uid == kNoOwner || wanted.gid == kNoOwner) return false;
  if (change_owner(file, wanted.uid, wanted.gid) == 0) return true;
  const int error = errno;
  if (error == EPERM && ::geteuid() != 0) {
    // The user may be a member of the wanted group.
    (void)change_owner(file, kNoOwner, wanted.gid);
    problems.note(
        "owners are not restored, nor groups of which the user is no member: only root may "
        "give files away. Such files have no setuid and setgid bits");
  } else {
    problems.add_shared("owner and group not set: " + errno_text(error), path);
  }
  return false;
}

}  // namespace

void apply_metadata(const FileRef& file, const Attributes& attributes, const Xattrs& xattrs,
                    const std::string& path, ProblemList& problems) {
  mode_t mode = attributes.mode & 07777;
  const mode_t inherited = S_ISDIR(attributes.mode) ? setgid_bit(file) : 0;
  // Otherwise a setuid program would run as the user of the restore.
  if (!set_owner(file, attributes, path, problems)) {
    mode &= static_cast<mode_t>(~(S_ISUID | S_ISGID));
    // The directory's group stays unchanged, so new entries must inherit the group as before.
    mode |= inherited;
  }
  // After chown, because chown removes security.capability; before chmod, because setting an ACL
  // may clear the setgid bit.
  bool lacks_root = false;
  for (const Xattr& xattr : xattrs) {
    if (set_xattr(file, xattr) == 0) continue;
    if (errno == EPERM && needs_root(xattr.name) && ::geteuid() != 0) {
      lacks_root = true;
      continue;
    }
    const bool is_foreign =
        base::classify_attribute(xattr.name) == base::AttributeName::kUnsupported;
    if (is_foreign && errno == EOPNOTSUPP) {
      problems.note("attribute " + xattr.name +
                    " is not restored: it is of another kind of file system");
    } else {
      problems.add_shared("attribute " + xattr.name + " not set: " + errno_text(errno), path);
    }
  }
  if (lacks_root) {
    problems.note_shared(
        "attributes trusted.* and security.* are not restored: only root may set them", path);
  }
  // Linux cannot change a symlink's mode.
  if (!S_ISLNK(attributes.mode) && change_mode(file, mode) != 0) {
    problems.add_shared("mode not set: " + errno_text(errno), path);
  }
  if (change_mtime(file, attributes.mtime) != 0) {
    problems.add_shared("modification time not set: " + errno_text(errno), path);
  }
}

void remove_other_xattrs(const FileRef& file, const Xattrs& wanted) {
  const auto has = read_xattrs(file);
  if (!has) return;
  for (const Xattr& xattr : *has) {
    if (std::ranges::any_of(wanted, [&](const Xattr& one) { return one.name == xattr.name; })) {
      continue;
    }
    // Attributes remain if the system refuses to remove them, like an SELinux label.
    const char* name = xattr.name.c_str();
    if (file.fd >= 0) {
      (void)::fremovexattr(file.fd, name);
    } else {
      (void)::lremovexattr(proc_path(file).c_str(), name);
    }
  }
}

Result<Xattrs> read_xattrs(const FileRef& file) {
  auto names =
      fill_buffer([&](char* out, std::size_t size) { return list_xattrs(file, out, size); });
  if (!names) {
    const int reason = names.error().errno_value();
    // An ordinary user may not be allowed to list the attributes of a special file.
    if (reason == ENOTSUP || reason == ENOSYS) return Xattrs();
    return std::move(names).error();
  }
  Xattrs xattrs;
  for (std::size_t at = 0; at < names->size();) {
    std::string name(names->c_str() + at);
    at += name.size() + 1;
    auto value =
        fill_buffer([&](char* out, std::size_t size) { return get_xattr(file, name, out, size); });
    if (!value) {
      if (value.error().errno_value() == ENODATA) continue;  // Removed in the meantime.
      return std::move(value).error();
    }
    xattrs.push_back(Xattr{std::move(name), std::move(*value)});
  }
  std::sort(xattrs.begin(), xattrs.end(),
            [](const Xattr& a, const Xattr& b) { return a.name < b.name; });
  return xattrs;
}

}  // namespace varve::transfer
