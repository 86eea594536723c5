// SPDX-License-Identifier: Apache-2.0
// Attributes, link targets and extended attributes.
#include <fmt/chrono.h>
#include <fmt/core.h>
#include <linux/limits.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "base/clock.h"
#include "fs/caller.h"
#include "fs/errno_map.h"
#include "fs/front_end.h"
#include "fs/posix_acl.h"
#include "fs/timeouts.h"

namespace varve::fs {
namespace {

/// Prefix of the attributes that Varve itself provides at the root of a version or of the mount.
/// listxattr(2) hides them, so that cp, rsync and comparisons ignore them. All other files may have
/// any attributes with this prefix.
constexpr std::string_view kOwnPrefix = "user.varve.";

constexpr std::string_view kTrustedPrefix = "trusted.";

bool is_own(std::string_view name) { return name.starts_with(kOwnPrefix); }

std::string utc(const Timestamp& time) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(time.seconds)));
}

std::optional<std::string> own_version_attribute(const VersionInfo& info, std::string_view name) {
  const bool sealed = info.state == VersionState::kSealed;
  if (name == "user.varve.state") return sealed ? "sealed" : "open";
  if (!sealed) return std::nullopt;
  if (name == "user.varve.sealed_at") return utc(info.sealed_at);
  if (name == "user.varve.unique_bytes") return std::to_string(info.unique_bytes);
  return std::nullopt;
}

/// Returns the path of the mount's root in the repository.
std::string path_of_root(const Node& root) {
  switch (root.kind) {
    case Node::Kind::kSeries:
      return root.slot->series().name;
    case Node::Kind::kOpen:
      return root.slot->series().name + "/" + root.writer->info().name;
    case Node::Kind::kSealed:
      return root.slot->series().name + "/" + root.reader->info().name;
    default:
      return {};
  }
}

void reply_value(fuse_req_t req, std::string_view value, std::size_t room) {
  if (room == 0) {
    fuse_reply_xattr(req, value.size());
  } else if (value.size() > room) {
    fuse_reply_err(req, ERANGE);
  } else {
    fuse_reply_buf(req, value.data(), value.size());
  }
}

/// Returns the errno for extended attributes: E2BIG, not EFBIG, for a value that is too large.
int xattr_errno(const Error& error) {
  if (error.code() != ErrorCode::kTooLarge) return report("xattr", error);
  return error.errno_value() == ENOSPC ? ENOSPC : E2BIG;
}

}  // namespace

void FrontEnd::getattr(fuse_req_t req, fuse_ino_t ino) {
  const auto node = resolve(ino);
  const auto values = node ? stat_of(*node) : Result<struct stat>(node.error());
  if (!values) {
    fuse_reply_err(req, report("stat", values.error()));
    return;
  }
  fuse_reply_attr(req, &values.value(), attribute_timeout_s(*node));
}

// Changes the attributes of a removed version or series, which a program may still have as its
// current directory.
void FrontEnd::set_removed(fuse_req_t req, Slot& slot, const AttributeChange& change) {
  auto values = slot.removed();
  if (!values) {
    fuse_reply_err(req, ESTALE);
    return;
  }
  if (change.mode) values->st_mode = (values->st_mode & S_IFMT) | *change.mode;
  if (change.uid) values->st_uid = *change.uid;
  if (change.gid) values->st_gid = *change.gid;
  const auto time = [](const Timestamp& from) {
    return timespec{.tv_sec = from.seconds, .tv_nsec = from.nanoseconds};
  };
  if (change.atime) values->st_atim = time(*change.atime);
  if (change.mtime) values->st_mtim = time(*change.mtime);
  values->st_ctim = time(base::SystemClock().now());
  slot.remove(*values);
  fuse_reply_attr(req, &*values, kSeriesTimeoutS);
}

void FrontEnd::setattr(fuse_req_t req, fuse_ino_t ino, const struct stat& values, int to_set) {
  const auto seen = resolve(ino);
  const bool was_removed = seen && seen->kind == Node::Kind::kRemoved;
  const auto node = was_removed ? seen : resolve_open(ino);
  if (!node) {
    fuse_reply_err(req, report("setattr", node.error()));
    return;
  }
  AttributeChange change;
  if ((to_set & FUSE_SET_ATTR_MODE) != 0) change.mode = values.st_mode & 07777;
  if ((to_set & FUSE_SET_ATTR_UID) != 0) change.uid = values.st_uid;
  if ((to_set & FUSE_SET_ATTR_GID) != 0) change.gid = values.st_gid;
  if ((to_set & FUSE_SET_ATTR_SIZE) != 0) change.size = static_cast<std::uint64_t>(values.st_size);
  if ((to_set & FUSE_SET_ATTR_ATIME) != 0) change.atime = to_timestamp(values.st_atim);
  if ((to_set & FUSE_SET_ATTR_MTIME) != 0) change.mtime = to_timestamp(values.st_mtim);
  const Timestamp now = base::SystemClock().now();
  if ((to_set & FUSE_SET_ATTR_ATIME_NOW) != 0) change.atime = now;
  if ((to_set & FUSE_SET_ATTR_MTIME_NOW) != 0) change.mtime = now;
  if (was_removed) {
    set_removed(req, *node->slot, change);
    return;
  }
  if (change.size && fuse_req_ctx(req)->uid != 0) {
    // The kernel requests the removal of the bits that run a program as another user. It omits the
    // set-group-ID bit without group execute permission, which only a group member's truncation
    // keeps.
    const auto before = node->writer->get(node->ino);
    const std::uint32_t mode = change.mode.value_or(before ? before->attributes.mode & 07777 : 0);
    if (before && (mode & S_ISGID) != 0 && !is_root_or_in_group(req, before->attributes.gid)) {
      change.mode = mode & ~static_cast<std::uint32_t>(S_ISGID);
    }
  }
  const auto entry = node->writer->set_attributes(node->ino, change);
  if (change.mode && (*change.mode & (S_ISUID | S_ISGID)) != 0) note_privileges();
  const auto done = entry && change.mode ? keep_acl_in_step(*node, *change.mode) : Result<void>();
  if (!entry || !done) {
    fuse_reply_err(req, report("setattr", entry ? done.error() : entry.error()));
    return;
  }
  const struct stat changed = stat_of(*node->slot, *entry);
  fuse_reply_attr(req, &changed, attribute_timeout_s(*node));
}

void FrontEnd::readlink(fuse_req_t req, fuse_ino_t ino) {
  const auto target = [&]() -> Result<std::string> {
    VARVE_TRY_ASSIGN(const Node node, resolve(ino));
    switch (node.kind) {
      case Node::Kind::kLatest: {
        VARVE_TRY_ASSIGN(VersionInfo info,
                         repository_.find_version(node.slot->series().id, "latest"));
        return std::move(info.name);
      }
      case Node::Kind::kOpen:
        return node.writer->read_link(node.ino);
      case Node::Kind::kSealed:
        return node.reader->read_link(node.rank);
      default:
        return Error(ErrorCode::kInvalid, "not a symbolic link");
    }
  }();
  if (target) {
    fuse_reply_readlink(req, target->c_str());
  } else {
    fuse_reply_err(req, report("readlink", target.error()));
  }
}

std::string FrontEnd::root_path() {
  const auto node = resolve(kRootNodeId);
  return node ? path_of_root(*node) : std::string();
}

Result<Xattrs> FrontEnd::xattrs_of(const Node& node) {
  if (node.kind == Node::Kind::kOpen) return node.writer->xattrs(node.ino);
  if (node.kind == Node::Kind::kSealed) return node.reader->xattrs(node.rank);
  return Xattrs{};
}

void FrontEnd::getxattr(fuse_req_t req, fuse_ino_t ino, const char* name, std::size_t size) {
  const auto node = resolve(ino);
  if (!node) {
    fuse_reply_err(req, report("getxattr", node.error()));
    return;
  }
  const std::string_view wanted = name;
  if (is_own(wanted)) {
    std::optional<std::string> value;
    if (ino == kRootNodeId && wanted == "user.varve.repository") {
      value = repository_.present_path();
    } else if (ino == kRootNodeId && wanted == "user.varve.pid") {
      value = std::to_string(getpid());
    } else if (ino == kRootNodeId && wanted == "user.varve.access") {
      value = repository_.read_only() ? "ro" : "rw";
    } else if (ino == kRootNodeId && wanted == "user.varve.root") {
      value = path_of_root(*node);
    } else if (node->is_version_root()) {
      // The repository returns the present name; an opened reader keeps the name from before a
      // rename.
      value = own_version_attribute(
          node->kind == Node::Kind::kOpen ? node->writer->info() : node->reader->info(), wanted);
    }
    if (value) {
      reply_value(req, *value, size);
      return;
    }
  }
  const auto all = xattrs_of(*node);
  if (!all) {
    fuse_reply_err(req, xattr_errno(all.error()));
    return;
  }
  const auto place = std::ranges::find(*all, wanted, &Xattr::name);
  if (place == all->end()) {
    fuse_reply_err(req, ENODATA);
  } else {
    reply_value(req, place->value, size);
  }
}

void FrontEnd::listxattr(fuse_req_t req, fuse_ino_t ino, std::size_t size) {
  const auto node = resolve(ino);
  const auto all = node ? xattrs_of(*node) : Result<Xattrs>(node.error());
  if (!all) {
    fuse_reply_err(req, xattr_errno(all.error()));
    return;
  }
  std::string names;
  std::optional<bool> is_admin;
  for (const Xattr& xattr : *all) {
    if (xattr.name.starts_with(kTrustedPrefix)) {
      // As in the kernel's own file systems, other callers do not see trusted attributes.
      if (!is_admin) is_admin = is_administrator(req);
      if (!*is_admin) continue;
    }
    // A version from an older Varve may have more names than listxattr(2) can return. All of them
    // can be read by name, and `varve restore` restores all.
    if (names.size() + xattr.name.size() + 1 > XATTR_LIST_MAX) break;
    names += xattr.name;
    names += '\0';
  }
  reply_value(req, names, size);
}

/// Updates the access ACL after chmod(2), the reverse of set_access_acl().
Result<void> FrontEnd::keep_acl_in_step(const Node& node, std::uint32_t mode) {
  VARVE_TRY_ASSIGN(const Xattrs all, node.writer->xattrs(node.ino));
  const auto acl = std::ranges::find(all, kAccessAclName, &Xattr::name);
  if (acl == all.end()) return {};
  return node.writer->set_xattr(node.ino, kAccessAclName, acl_after_chmod(acl->value, mode),
                                XattrMode::kReplace);
}

/// Sets the permission bits from an access ACL. Stores the ACL itself only if it has more than the
/// bits: cp -a gives every file an ACL, and most of those only repeat the bits.
Result<void> FrontEnd::set_access_acl(fuse_req_t req, const Node& node, fuse_ino_t ino,
                                      std::string_view value) {
  const auto acl = summarise_acl(value);
  if (!acl) return Error(ErrorCode::kInvalid, "not an access control list");
  VARVE_TRY_ASSIGN(const OpenEntry entry, node.writer->get(node.ino));
  AttributeChange change;
  change.mode = (entry.attributes.mode & 07000) | acl->permissions;
  if (show_.permissions_checked && !is_root_or_in_group(req, entry.attributes.gid)) {
    *change.mode &= ~static_cast<std::uint32_t>(S_ISGID);  // As chmod(2) does.
  }
  VARVE_TRY(node.writer->set_attributes(node.ino, change));
  // The kernel does not expect an extended attribute to change the mode. Without a byte range, this
  // notification takes no lock that the waiting request holds.
  fuse_lowlevel_notify_inval_inode(session_, ino, -1, 0);
  if (acl->extended) {
    return node.writer->set_xattr(node.ino, kAccessAclName, value, XattrMode::kAny);
  }
  auto removed = node.writer->remove_xattr(node.ino, kAccessAclName);
  if (!removed && removed.error().code() != ErrorCode::kNoAttribute) return removed;
  return {};
}

void FrontEnd::setxattr(fuse_req_t req, fuse_ino_t ino, const char* name, std::string_view value,
                        int flags) {
  const auto node = resolve_open(ino);
  if (!node) {
    fuse_reply_err(req, report("setxattr", node.error()));
    return;
  }
  if (is_own(name) && node->is_version_root()) {
    fuse_reply_err(req, EPERM);
    return;
  }
  XattrMode mode = XattrMode::kAny;
  if ((flags & XATTR_CREATE) != 0) mode = XattrMode::kCreate;
  if ((flags & XATTR_REPLACE) != 0) mode = XattrMode::kReplace;
  const auto done = name == kAccessAclName ? set_access_acl(req, *node, ino, value)
                                           : node->writer->set_xattr(node->ino, name, value, mode);
  if (name == kCapabilityName) note_privileges();
  fuse_reply_err(req, done ? 0 : xattr_errno(done.error()));
}

void FrontEnd::removexattr(fuse_req_t req, fuse_ino_t ino, const char* name) {
  const auto node = resolve_open(ino);
  if (!node) {
    fuse_reply_err(req, report("removexattr", node.error()));
    return;
  }
  if (is_own(name) && node->is_version_root()) {
    fuse_reply_err(req, EPERM);
    return;
  }
  const auto done = node->writer->remove_xattr(node->ino, name);
  const bool is_acl = std::string_view(name) == kAccessAclName || name == kDefaultAclName;
  if (!done && is_acl && done.error().code() == ErrorCode::kNoAttribute) {
    fuse_reply_err(req, 0);  // The requested state, no ACL, already exists.
    return;
  }
  fuse_reply_err(req, done ? 0 : xattr_errno(done.error()));
}

}  // namespace varve::fs
