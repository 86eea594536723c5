// SPDX-License-Identifier: Apache-2.0
#include "fs/xattr_operations.h"

#include <linux/limits.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>
#include <utility>

#include "base/attribute_name.h"
#include "control/own_attribute.h"
#include "fs/posix_acl.h"

namespace varve::fs {
namespace {

constexpr std::string_view kTrustedPrefix = "trusted.";

bool is_own(std::string_view name) { return name.starts_with(kOwnXattrPrefix); }

Result<Reply> xattr_done(const Result<void>& result) {
  if (!result) return result.error();
  return Reply(Done{});
}

/// Returns the errno of ext4 for an attribute that is absent. Versions may have attributes with
/// names not accepted by ext4, because `varve store` keeps the attributes of any file system.
int errno_of_absent(std::string_view name) {
  switch (base::classify_attribute(name)) {
    case base::AttributeName::kTaken:
      return ENODATA;
    case base::AttributeName::kIncomplete:
      return EINVAL;
    case base::AttributeName::kUnsupported:
      return EOPNOTSUPP;
  }
  return EOPNOTSUPP;
}

Result<Xattrs> xattrs_of(const Node& node) {
  if (node.kind == Node::Kind::kOpen) return node.writer->xattrs(node.ino);
  if (node.kind == Node::Kind::kSealed) return node.reader->xattrs(node.rank);
  return Xattrs{};
}

}  // namespace

Result<Reply> XattrOperations::ioctl(fuse_ino_t ino, unsigned request, std::string_view in,
                                     std::size_t out_bytes) {
  constexpr std::size_t kBytes = sizeof(control::OwnAttributeText);
  if (request != control::kOwnAttributeRequest || in.size() != kBytes || out_bytes != kBytes) {
    return Reply(Refusal{ENOTTY});
  }
  VARVE_TRY_ASSIGN(const Node node, parts_.nodes.resolve(ino));
  const std::string_view name = in.substr(0, std::min(in.find('\0'), in.size()));
  auto value = is_own(name) ? parts_.versions.own_xattr(ino, node, name) : std::nullopt;
  if (!value || value->size() >= kBytes) return Reply(Refusal{ENODATA});
  value->resize(kBytes, '\0');
  return Reply(IoctlReply{std::move(*value)});
}

Result<Reply> XattrOperations::getxattr(fuse_ino_t ino, std::string_view name, std::size_t room) {
  if (answers_ != Answers::kAll) return Reply(Refusal{ENOSYS});
  VARVE_TRY_ASSIGN(const Node node, parts_.nodes.resolve(ino));
  if (is_own(name)) {
    auto value = parts_.versions.own_xattr(ino, node, name);
    if (value) return value_reply(std::move(*value), room);
  }
  auto all = xattrs_of(node);
  if (!all) return all.error();
  const auto place = std::ranges::find(*all, name, &Xattr::name);
  if (place == all->end()) return Reply(Refusal{errno_of_absent(name)});
  return value_reply(std::move(place->value), room);
}

Result<Reply> XattrOperations::listxattr(const Caller& caller, fuse_ino_t ino, std::size_t room) {
  if (answers_ != Answers::kAll) return Reply(Refusal{ENOSYS});
  const auto node = parts_.nodes.resolve(ino);
  const auto all = node ? xattrs_of(*node) : Result<Xattrs>(node.error());
  if (!all) return all.error();
  std::string names;
  std::optional<bool> is_admin;
  for (const Xattr& xattr : *all) {
    if (xattr.name.starts_with(kTrustedPrefix)) {
      // As in the kernel's own file systems, other callers do not see trusted attributes.
      if (!is_admin) is_admin = caller.is_administrator();
      if (!*is_admin) continue;
    }
    // A version from an older Varve may have more names than listxattr(2) can return. All
    // attributes can be read by name, and `varve restore` restores all.
    if (names.size() + xattr.name.size() + 1 > XATTR_LIST_MAX) break;
    names += xattr.name;
    names += '\0';
  }
  return value_reply(std::move(names), room);
}

/// Sets the permission bits from an access ACL. Stores the ACL itself only if the ACL has more than
/// the bits: cp -a gives every file an ACL, and most ACLs only repeat the bits.
Result<void> XattrOperations::set_access_acl(const Caller& caller, fuse_ino_t ino, const Node& node,
                                             std::string_view value) {
  const auto acl = summarise_acl(value);
  if (!acl) return Error(ErrorCode::kInvalid, "not an access control list");
  VARVE_TRY_ASSIGN(const OpenEntry entry, node.writer->get(node.ino));
  AttributeChange change;
  change.mode = (entry.attributes.mode & 07000) | acl->permissions;
  if (show_.permissions_checked && !caller.is_root_or_in_group(entry.attributes.gid)) {
    *change.mode &= ~static_cast<std::uint32_t>(S_ISGID);  // As chmod(2) does.
  }
  VARVE_TRY(node.writer->set_attributes(node.ino, change));
  // The kernel does not expect an extended attribute to change the mode.
  parts_.kernel.forget_attributes(ino);
  if (acl->extended) {
    return node.writer->set_xattr(node.ino, kAccessAclName, value, XattrMode::kAny);
  }
  auto removed = node.writer->remove_xattr(node.ino, kAccessAclName);
  if (!removed && removed.error().code() != ErrorCode::kNoAttribute) return removed;
  return {};
}

Result<Reply> XattrOperations::setxattr(const Caller& caller, fuse_ino_t ino,
                                        const NamedValue& xattr, int flags) {
  if (answers_ == Answers::kNone) return Reply(Refusal{ENOSYS});
  VARVE_TRY_ASSIGN(const Node node, parts_.nodes.resolve_open(ino));
  if (is_own(xattr.name) && node.is_version_root()) return Reply(Refusal{EPERM});
  if (base::classify_attribute(xattr.name) != base::AttributeName::kTaken) {
    return Reply(Refusal{errno_of_absent(xattr.name)});
  }
  XattrMode mode = XattrMode::kAny;
  if ((flags & XATTR_CREATE) != 0) mode = XattrMode::kCreate;
  if ((flags & XATTR_REPLACE) != 0) mode = XattrMode::kReplace;
  const auto done = xattr.name == kAccessAclName
                        ? set_access_acl(caller, ino, node, xattr.value)
                        : node.writer->set_xattr(node.ino, xattr.name, xattr.value, mode);
  if (xattr.name == kCapabilityName) parts_.privileges.note();
  return xattr_done(done);
}

Result<Reply> XattrOperations::removexattr(fuse_ino_t ino, std::string_view name) {
  if (answers_ == Answers::kNone) return Reply(Refusal{ENOSYS});
  VARVE_TRY_ASSIGN(const Node node, parts_.nodes.resolve_open(ino));
  if (is_own(name) && node.is_version_root()) return Reply(Refusal{EPERM});
  const auto done = node.writer->remove_xattr(node.ino, name);
  const bool is_acl = name == kAccessAclName || name == kDefaultAclName;
  // The requested state, no ACL, already exists.
  if (!done && is_acl && done.error().code() == ErrorCode::kNoAttribute) return Reply(Done{});
  if (!done && done.error().code() == ErrorCode::kNoAttribute) {
    return Reply(Refusal{errno_of_absent(name)});
  }
  return xattr_done(done);
}

}  // namespace varve::fs
