// SPDX-License-Identifier: Apache-2.0
#include "fs/privileges.h"

#include <sys/stat.h>

#include <algorithm>

#include "fs/posix_acl.h"

namespace varve::fs {

Result<void> Privileges::drop(const Caller& caller, fuse_ino_t ino, FileHandle& handle) {
  const std::uint64_t given = given_.load();
  if (handle.plain_at() == given) return {};
  VARVE_TRY_ASSIGN(const Node node, nodes_.resolve_open(ino));
  VARVE_TRY_ASSIGN(const OpenEntry entry, node.writer->get(node.ino));
  const std::uint32_t mode = entry.attributes.mode;
  std::uint32_t plain = mode & ~static_cast<std::uint32_t>(S_ISUID);
  const bool may_keep_group =
      (mode & S_IXGRP) == 0 &&
      ((mode & S_ISGID) == 0 || caller.is_root_or_in_group(entry.attributes.gid));
  if (!may_keep_group) plain &= ~static_cast<std::uint32_t>(S_ISGID);
  const bool keeps_bits = plain != mode && caller.uid() == 0;
  bool told = false;
  if (plain != mode && !keeps_bits) {
    AttributeChange change;
    change.mode = plain & 07777;
    VARVE_TRY(node.writer->set_attributes(node.ino, change));
    told = true;
  }
  VARVE_TRY_ASSIGN(const Xattrs all, node.writer->xattrs(node.ino));
  if (std::ranges::find(all, kCapabilityName, &Xattr::name) != all.end()) {
    VARVE_TRY(node.writer->remove_xattr(node.ino, kCapabilityName));
    told = true;
  }
  if (told) kernel_.forget_attributes(ino);
  if (!keeps_bits && (plain & S_ISGID) == 0) handle.set_plain_at(given);
  return {};
}

}  // namespace varve::fs
