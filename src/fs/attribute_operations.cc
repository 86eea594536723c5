// SPDX-License-Identifier: Apache-2.0
#include "fs/attribute_operations.h"

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "base/clock.h"
#include "fs/file_stat.h"
#include "fs/posix_acl.h"
#include "fs/timeouts.h"

namespace varve::fs {
namespace {

AttributeChange requested_change(const struct stat& values, int to_set) {
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
  return change;
}

}  // namespace

Result<Reply> AttributeOperations::getattr(fuse_ino_t ino) {
  VARVE_TRY_ASSIGN(const Node node, nodes_.resolve(ino));
  VARVE_TRY_ASSIGN(const struct stat values, attributes_.of(node));
  return Reply(AttributeReply{values, attributes_.timeout_s(node)});
}

// Changes the attributes of a removed version or series. A program may still use the removed
// directory as current directory.
Reply AttributeOperations::set_removed(Slot& slot, const AttributeChange& change) {
  auto values = slot.removed();
  if (!values) return Refusal{ESTALE};
  if (change.mode) values->st_mode = (values->st_mode & S_IFMT) | *change.mode;
  if (change.uid) values->st_uid = *change.uid;
  if (change.gid) values->st_gid = *change.gid;
  if (change.atime) values->st_atim = to_timespec(*change.atime);
  if (change.mtime) values->st_mtim = to_timespec(*change.mtime);
  values->st_ctim = to_timespec(base::SystemClock().now());
  slot.remove(*values);
  return AttributeReply{*values, kSeriesTimeoutS};
}

Result<void> AttributeOperations::update_acl(const Node& node, std::uint32_t mode) {
  VARVE_TRY_ASSIGN(const Xattrs all, node.writer->xattrs(node.ino));
  const auto acl = std::ranges::find(all, kAccessAclName, &Xattr::name);
  if (acl == all.end()) return {};
  return node.writer->set_xattr(node.ino, kAccessAclName, acl_after_chmod(acl->value, mode),
                                XattrMode::kReplace);
}

Result<Reply> AttributeOperations::setattr(const Caller& caller, fuse_ino_t ino,
                                           const struct stat& values, int to_set) {
  const auto seen = nodes_.resolve(ino);
  if (seen && seen->kind == Node::Kind::kRemoved) {
    return set_removed(*seen->slot, requested_change(values, to_set));
  }
  // rsync --delete, used to empty a version, also sets the attributes of the version's directory.
  // The attributes have no effect.
  if (seen && seen->kind == Node::Kind::kSealed && (to_set & FUSE_SET_ATTR_SIZE) == 0 &&
      removals_.are_accepted() && removals_.may_remove(caller) &&
      (seen->is_version_root() || removals_.is_under_way(*seen->slot))) {
    VARVE_TRY_ASSIGN(const struct stat unchanged, attributes_.of(*seen));
    return Reply(AttributeReply{unchanged, 0});
  }
  if (seen && seen->kind == Node::Kind::kBeside) {
    return Reply(Later{[this, node = *seen, change = requested_change(values, to_set)] {
      const auto changed = node.beside->set_attributes(node.ino, change);
      if (!changed) return Result<Reply>(changed.error());
      return Result<Reply>(
          AttributeReply{attributes_.of(*node.slot, *changed), attributes_.timeout_s(node)});
    }});
  }
  VARVE_TRY_ASSIGN(const Node node, nodes_.resolve_open(ino));
  AttributeChange change = requested_change(values, to_set);
  if (change.size && caller.uid() != 0) {
    // The kernel requests the removal of the set-user-ID and set-group-ID bits. The request omits
    // the set-group-ID bit without group execute permission, kept only by a group member's
    // truncation.
    const auto before = node.writer->get(node.ino);
    const std::uint32_t mode = change.mode.value_or(before ? before->attributes.mode & 07777 : 0);
    if (before && (mode & S_ISGID) != 0 && !caller.is_root_or_in_group(before->attributes.gid)) {
      change.mode = mode & ~static_cast<std::uint32_t>(S_ISGID);
    }
  }
  const auto entry = node.writer->set_attributes(node.ino, change);
  if (change.mode && (*change.mode & (S_ISUID | S_ISGID)) != 0) privileges_.note();
  if (!entry) return entry.error();
  if (change.mode) VARVE_TRY(update_acl(node, *change.mode));
  return Reply(AttributeReply{attributes_.of(*node.slot, *entry), attributes_.timeout_s(node)});
}

Result<Reply> AttributeOperations::readlink(fuse_ino_t ino) {
  VARVE_TRY_ASSIGN(const Node node, nodes_.resolve(ino));
  std::string target;
  switch (node.kind) {
    case Node::Kind::kLatest: {
      VARVE_TRY_ASSIGN(target, versions_.latest_target(node));
      break;
    }
    case Node::Kind::kBeside: {
      VARVE_TRY_ASSIGN(target, node.beside->read_link(node.ino));
      break;
    }
    case Node::Kind::kOpen: {
      VARVE_TRY_ASSIGN(target, node.writer->read_link(node.ino));
      break;
    }
    case Node::Kind::kSealed: {
      VARVE_TRY_ASSIGN(target, node.reader->read_link(node.rank));
      break;
    }
    default:
      return Error(ErrorCode::kInvalid, "not a symbolic link");
  }
  return Reply(LinkReply{std::move(target)});
}

}  // namespace varve::fs
