// SPDX-License-Identifier: Apache-2.0
#include "version/open_attributes.h"

#include <linux/limits.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <mutex>

#include "catalog/version_origin.h"

namespace varve::version {

namespace {

// Checks the limits on a file's extended attributes as if `wanted` were set among `all`.
Result<void> check_limits(const Xattrs& all, const Xattr& wanted) {
  bool present = false;
  std::size_t total = wanted.name.size() + wanted.value.size();
  std::size_t names = wanted.name.size() + 1;
  for (const auto& xattr : all) {
    if (xattr.name == wanted.name) {
      present = true;
      continue;
    }
    total += xattr.name.size() + xattr.value.size();
    names += xattr.name.size() + 1;
  }
  if (!present && names > XATTR_LIST_MAX) {
    return Error(ErrorCode::kAttributeTooLarge,
                 "the names of a file's extended attributes are limited to 64 KiB");
  }
  if (wanted.value.size() > kXattrValueBytesMax || total > kXattrTotalBytesMax) {
    return Error(ErrorCode::kAttributeTooLarge,
                 "extended attributes are limited to 64 KiB each and "
                 "256 KiB a file");
  }
  return {};
}

}  // namespace

Result<OpenEntry> OpenAttributes::get(Ino ino) {
  const std::lock_guard lock(state_.mutex);
  VARVE_TRY_ASSIGN(const auto* inode, state_.tree.get(ino));
  return inode->entry();
}

Result<OpenEntry> OpenAttributes::set_attributes(Ino ino, const AttributeChange& change) {
  OpenEntry entry;
  {
    std::unique_lock lock(state_.mutex);
    VARVE_TRY(checkpointer_.check_writable());
    VARVE_TRY_ASSIGN(auto* inode,
                     change.size ? contents_.wait_until_uncut(lock, ino) : state_.tree.get(ino));
    const Timestamp now = state_.parts.clock->now();
    if (change.size) {
      if (inode->is_directory()) return Error(ErrorCode::kIsDirectory, "a directory");
      if (!inode->is_regular()) return Error(ErrorCode::kInvalid, "not a regular file");
      VARVE_TRY(contents_.truncate(*inode, *change.size));
      inode->mtime = now;
    }
    if (change.mode) inode->mode = (inode->mode & S_IFMT) | (*change.mode & 07777);
    if (change.uid) inode->uid = *change.uid;
    if (change.gid) inode->gid = *change.gid;
    if (change.atime) inode->atime = *change.atime;
    if (change.mtime) inode->mtime = *change.mtime;
    inode->ctime = now;
    state_.tree.touch(*inode);
    entry = inode->entry();
  }
  VARVE_TRY(checkpointer_.relieve());
  return entry;
}

Result<std::string> OpenAttributes::read_link(Ino ino) {
  const std::lock_guard lock(state_.mutex);
  VARVE_TRY_ASSIGN(const auto* inode, state_.tree.get(ino));
  if ((inode->mode & S_IFMT) != S_IFLNK) {
    return Error(ErrorCode::kInvalid, "not a symlink");
  }
  return inode->symlink_target;
}

Result<Xattrs> OpenAttributes::xattrs(Ino ino) {
  const std::lock_guard lock(state_.mutex);
  VARVE_TRY_ASSIGN(const auto* inode, state_.tree.get(ino));
  Xattrs xattrs = inode->xattrs;
  if (ino == kRootIno) catalog::hide_own_attributes(xattrs);
  return xattrs;
}

Result<Xattrs> OpenAttributes::own_attributes() {
  const std::lock_guard lock(state_.mutex);
  VARVE_TRY_ASSIGN(const auto* inode, state_.tree.get(kRootIno));
  Xattrs own = inode->xattrs;
  std::erase_if(own, [](const Xattr& xattr) { return !catalog::is_hidden_attribute(xattr.name); });
  return own;
}

Result<void> OpenAttributes::set_xattr(Ino ino, std::string_view name, std::string_view value,
                                       XattrMode mode) {
  if (name.empty() || name.size() > kNameBytesMax) {
    return Error(ErrorCode::kInvalid, "an attribute's name has 1 to 255 bytes");
  }
  const std::lock_guard lock(state_.mutex);
  VARVE_TRY(checkpointer_.check_writable());
  VARVE_TRY_ASSIGN(auto* inode, state_.tree.get(ino));
  auto& all = inode->xattrs;
  auto it =
      std::lower_bound(all.begin(), all.end(), name,
                       [](const Xattr& a, std::string_view wanted) { return a.name < wanted; });
  const bool present = it != all.end() && it->name == name;
  VARVE_TRY(state_.admit_record(value.size()));
  if (present && mode == XattrMode::kCreate) {
    return Error(ErrorCode::kExists, "the attribute is set already");
  }
  if (!present && mode == XattrMode::kReplace) {
    return Error(ErrorCode::kNoAttribute, "no such attribute");
  }
  Xattr wanted{std::string(name), std::string(value)};
  VARVE_TRY(check_limits(all, wanted));
  if (present) {
    it->value = std::move(wanted.value);
  } else {
    all.insert(it, std::move(wanted));
  }
  inode->ctime = state_.parts.clock->now();
  state_.tree.touch(*inode);
  return {};
}

Result<void> OpenAttributes::remove_xattr(Ino ino, std::string_view name) {
  const std::lock_guard lock(state_.mutex);
  VARVE_TRY(checkpointer_.check_writable());
  VARVE_TRY_ASSIGN(auto* inode, state_.tree.get(ino));
  const auto gone = std::erase_if(inode->xattrs, [&](const Xattr& a) { return a.name == name; });
  if (gone == 0) return Error(ErrorCode::kNoAttribute, "no such attribute");
  inode->ctime = state_.parts.clock->now();
  state_.tree.touch(*inode);
  return {};
}

}  // namespace varve::version
