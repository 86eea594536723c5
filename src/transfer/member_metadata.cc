// SPDX-License-Identifier: Apache-2.0
#include "transfer/member_metadata.h"

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <limits>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "transfer/libarchive.h"

namespace varve::transfer {
namespace {

constexpr std::uint32_t kAclVersion = 2;
constexpr std::uint32_t kNoId = 0xffffffff;

/// An entry of a POSIX ACL, in the form of acl(5) and of the kernel's attribute.
struct AclEntry {
  std::uint16_t tag = 0;
  std::uint16_t permissions = 0;
  std::uint32_t id = kNoId;
};

constexpr std::uint16_t kAclUser = 2;
constexpr std::uint16_t kAclGroup = 8;

std::optional<std::uint16_t> acl_tag(int tag) {
  switch (tag) {
    case ARCHIVE_ENTRY_ACL_USER_OBJ:
      return 1;
    case ARCHIVE_ENTRY_ACL_USER:
      return kAclUser;
    case ARCHIVE_ENTRY_ACL_GROUP_OBJ:
      return 4;
    case ARCHIVE_ENTRY_ACL_GROUP:
      return kAclGroup;
    case ARCHIVE_ENTRY_ACL_MASK:
      return 16;
    case ARCHIVE_ENTRY_ACL_OTHER:
      return 32;
    default:
      return std::nullopt;
  }
}

/// Returns the permission bits for libarchive's permissions.
std::uint16_t acl_bits(int permissions) {
  std::uint16_t bits = 0;
  if ((permissions & ARCHIVE_ENTRY_ACL_READ) != 0) bits |= 4;
  if ((permissions & ARCHIVE_ENTRY_ACL_WRITE) != 0) bits |= 2;
  if ((permissions & ARCHIVE_ENTRY_ACL_EXECUTE) != 0) bits |= 1;
  return bits;
}

/// Returns the id of a name without a number in the archive.
std::optional<std::uint32_t> id_of(std::uint16_t tag, const char* name) {
  if (name == nullptr) return std::nullopt;
  if (tag == kAclUser) {
    const passwd* user = ::getpwnam(name);
    return user == nullptr ? std::nullopt : std::optional<std::uint32_t>(user->pw_uid);
  }
  const group* found = ::getgrnam(name);
  return found == nullptr ? std::nullopt : std::optional<std::uint32_t>(found->gr_gid);
}

/// Returns the kernel's form of an ACL; "" if the member has no ACL of the type, or an unusable
/// ACL.
std::string acl_value(archive_entry* entry, int type, const std::string& path,
                      ProblemList& problems) {
  if (libarchive().archive_entry_acl_reset(entry, type) == 0) return {};
  std::vector<AclEntry> acl;
  int found_type = 0;
  int permissions = 0;
  int tag = 0;
  int id = 0;
  const char* name = nullptr;
  while (libarchive().archive_entry_acl_next(entry, type, &found_type, &permissions, &tag, &id,
                                             &name) == ARCHIVE_OK) {
    const auto own_tag = acl_tag(tag);
    if (!own_tag) {
      problems.add_shared("ACL not stored: it is not one of POSIX", path);
      return {};
    }
    AclEntry one{*own_tag, acl_bits(permissions), kNoId};
    if (one.tag == kAclUser || one.tag == kAclGroup) {
      const auto known =
          id >= 0 ? std::optional(static_cast<std::uint32_t>(id)) : id_of(one.tag, name);
      if (!known) {
        problems.add_shared(
            "ACL not stored: it names a user or group that this system does not have", path);
        return {};
      }
      one.id = *known;
    }
    acl.push_back(one);
  }
  if (acl.empty()) return {};
  std::ranges::sort(acl, {}, [](const AclEntry& one) { return std::tie(one.tag, one.id); });
  std::string value;
  base::ByteWriter writer(value);
  writer.u32(kAclVersion);
  for (const AclEntry& one : acl) {
    writer.u16(one.tag);
    writer.u16(one.permissions);
    writer.u32(one.id);
  }
  return value;
}

/// Returns a member's permission bits. If the member has an ACL, libarchive has set the group's
/// bits to the bits of the ACL's group. But the group's bits of a file are the ACL's mask, as
/// acl(5) says.
std::uint32_t permissions_of(archive_entry* entry) {
  std::uint32_t all = libarchive().archive_entry_perm(entry) & 07777U;
  libarchive().archive_entry_acl_reset(entry, ARCHIVE_ENTRY_ACL_TYPE_ACCESS);
  int type = 0;
  int permissions = 0;
  int tag = 0;
  int id = 0;
  const char* name = nullptr;
  while (libarchive().archive_entry_acl_next(entry, ARCHIVE_ENTRY_ACL_TYPE_ACCESS, &type,
                                             &permissions, &tag, &id, &name) == ARCHIVE_OK) {
    if (tag != ARCHIVE_ENTRY_ACL_MASK) continue;
    all = (all & ~070U) | (acl_bits(permissions) << 3U);
  }
  return all;
}

/// Returns the name of an attribute, unescaped: GNU tar and TarWriter escape '=' and '%'.
std::string xattr_name(std::string_view escaped) {
  std::string name;
  while (!escaped.empty()) {
    const bool is_equals = escaped.starts_with("%3D");
    const bool is_percent = escaped.starts_with("%25");
    name += is_equals ? '=' : escaped.front();
    escaped.remove_prefix(is_equals || is_percent ? 3 : 1);
  }
  return name;
}

Xattrs xattrs_of(archive_entry* entry, const std::string& path, ProblemList& problems) {
  Xattrs xattrs;
  libarchive().archive_entry_xattr_reset(entry);
  const char* name = nullptr;
  const void* value = nullptr;
  std::size_t size = 0;
  while (libarchive().archive_entry_xattr_next(entry, &name, &value, &size) == ARCHIVE_OK) {
    if (name == nullptr || *name == '\0') continue;
    xattrs.push_back({xattr_name(name), std::string(static_cast<const char*>(value), size)});
  }
  for (const auto& [type, attribute] :
       {std::pair(ARCHIVE_ENTRY_ACL_TYPE_ACCESS, "system.posix_acl_access"),
        std::pair(ARCHIVE_ENTRY_ACL_TYPE_DEFAULT, "system.posix_acl_default")}) {
    std::string acl = acl_value(entry, type, path, problems);
    if (!acl.empty()) xattrs.push_back({attribute, std::move(acl)});
  }
  // An archive may have an attribute twice. The last value counts.
  std::ranges::stable_sort(xattrs, {}, &Xattr::name);
  const auto is_replaced = [&](const Xattr& one) {
    const auto next = &one + 1;
    return next != xattrs.data() + xattrs.size() && next->name == one.name;
  };
  Xattrs last;
  for (const Xattr& one : xattrs) {
    if (!is_replaced(one)) last.push_back(one);
  }
  return last;
}

Result<std::uint32_t> number_of(std::int64_t value, const char* what) {
  if (value < 0 || value >= std::numeric_limits<std::uint32_t>::max()) {
    return Error(ErrorCode::kInvalid, std::string("the archive has a wrong ") + what);
  }
  return static_cast<std::uint32_t>(value);
}

}  // namespace

Result<MemberMetadata> metadata_of(archive_entry* entry, const std::string& path,
                                   ProblemList& problems) {
  MemberMetadata metadata;
  metadata.file.mode = libarchive().archive_entry_filetype(entry) | permissions_of(entry);
  VARVE_TRY_ASSIGN(metadata.file.uid, number_of(libarchive().archive_entry_uid(entry), "user id"));
  VARVE_TRY_ASSIGN(metadata.file.gid, number_of(libarchive().archive_entry_gid(entry), "group id"));
  if (S_ISBLK(metadata.file.mode) || S_ISCHR(metadata.file.mode)) {
    VARVE_TRY_ASSIGN(
        const auto major_number,
        number_of(static_cast<std::int64_t>(libarchive().archive_entry_rdevmajor(entry)),
                  "device number"));
    VARVE_TRY_ASSIGN(
        const auto minor_number,
        number_of(static_cast<std::int64_t>(libarchive().archive_entry_rdevminor(entry)),
                  "device number"));
    metadata.file.rdev = makedev(major_number, minor_number);
  }
  if (libarchive().archive_entry_mtime_is_set(entry) != 0) {
    const long nanoseconds = libarchive().archive_entry_mtime_nsec(entry);
    metadata.mtime = {libarchive().archive_entry_mtime(entry),
                      static_cast<std::uint32_t>(nanoseconds)};
    if (nanoseconds < 0 || nanoseconds >= 1'000'000'000) metadata.mtime.nanoseconds = 0;
    // libarchive returns kLatest or -kLatest for a number that is too large.
    constexpr auto kLatest = std::numeric_limits<std::int64_t>::max();
    if (metadata.mtime.seconds == kLatest || metadata.mtime.seconds == -kLatest) {
      problems.add_shared("the mtime is out of range; the nearest possible one is stored", path);
    }
  } else {
    metadata.mtime = {std::time(nullptr), 0};
  }
  metadata.file.xattrs = xattrs_of(entry, path, problems);
  return metadata;
}

}  // namespace varve::transfer
