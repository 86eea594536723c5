// SPDX-License-Identifier: Apache-2.0
#include "fs/posix_acl.h"

#include <vector>

#include "base/coding.h"

namespace varve::fs {
namespace {

// Layout as in linux/posix_acl_xattr.h: a version, then entries of tag, permissions and id.
constexpr std::uint32_t kAclVersion = 2;
constexpr std::uint16_t kOwner = 0x01;
constexpr std::uint16_t kUser = 0x02;
constexpr std::uint16_t kOwningGroup = 0x04;
constexpr std::uint16_t kGroup = 0x08;
constexpr std::uint16_t kMask = 0x10;
constexpr std::uint16_t kOthers = 0x20;

struct AclEntry {
  std::uint16_t tag = 0;
  std::uint16_t permissions = 0;
  std::uint32_t id = 0;
};

std::optional<std::vector<AclEntry>> decode(std::string_view value) {
  base::ByteReader reader(value);
  if (reader.u32() != kAclVersion) return std::nullopt;
  std::vector<AclEntry> entries;
  while (reader.ok() && reader.left() > 0) {
    AclEntry entry;
    entry.tag = reader.u16();
    entry.permissions = reader.u16();
    entry.id = reader.u32();
    if (entry.permissions > 7) return std::nullopt;
    entries.push_back(entry);
  }
  if (!reader.done()) return std::nullopt;
  return entries;
}

std::string encode(const std::vector<AclEntry>& entries) {
  std::string result;
  base::ByteWriter writer(result);
  writer.u32(kAclVersion);
  for (const AclEntry& entry : entries) {
    writer.u16(entry.tag);
    writer.u16(entry.permissions);
    writer.u32(entry.id);
  }
  return result;
}

/// Sets the permissions of each entry that has bits in the mode to change(permissions, bits). With
/// a mask entry, the group bits of the mode belong to the mask.
template <typename Change>
void match_with_mode(std::vector<AclEntry>& entries, std::uint32_t mode, const Change& change) {
  bool masked = false;
  for (const AclEntry& entry : entries) masked = masked || entry.tag == kMask;
  const std::uint16_t group_tag = masked ? kMask : kOwningGroup;
  for (AclEntry& entry : entries) {
    unsigned shift = 0;
    if (entry.tag == kOwner) {
      shift = 6;
    } else if (entry.tag == group_tag) {
      shift = 3;
    } else if (entry.tag != kOthers) {
      continue;
    }
    entry.permissions = change(entry.permissions, static_cast<std::uint16_t>((mode >> shift) & 7));
  }
}

}  // namespace

std::optional<AclSummary> summarise_acl(std::string_view value) {
  const auto entries = decode(value);
  if (!entries) return std::nullopt;
  AclSummary summary;
  std::uint32_t group = 0;
  std::optional<std::uint32_t> mask;
  unsigned seen = 0;
  for (const AclEntry& entry : *entries) {
    seen |= entry.tag;
    switch (entry.tag) {
      case kOwner:
        summary.permissions |= entry.permissions << 6U;
        break;
      case kOwningGroup:
        group = entry.permissions;
        break;
      case kMask:
        mask = entry.permissions;
        break;
      case kOthers:
        summary.permissions |= entry.permissions;
        break;
      case kUser:
      case kGroup:
        break;
      default:
        return std::nullopt;
    }
  }
  constexpr unsigned kNeeded = kOwner | kOwningGroup | kOthers;
  if ((seen & kNeeded) != kNeeded) return std::nullopt;
  // With a mask entry, the group bits of the mode belong to the mask.
  summary.permissions |= mask.value_or(group) << 3U;
  summary.extended = (seen & ~kNeeded) != 0;
  return summary;
}

std::optional<InheritedAcl> inherit_acl(std::string_view value, std::uint32_t mode) {
  auto entries = decode(value);
  if (!entries) return std::nullopt;
  match_with_mode(*entries, mode, [](std::uint16_t granted, std::uint16_t wanted) {
    return static_cast<std::uint16_t>(granted & wanted);
  });
  InheritedAcl result;
  result.access = encode(*entries);
  const auto summary = summarise_acl(result.access);
  if (!summary) return std::nullopt;
  result.permissions = summary->permissions;
  if (!summary->extended) result.access.clear();
  return result;
}

std::string acl_after_chmod(std::string_view value, std::uint32_t mode) {
  auto entries = decode(value);
  if (!entries) return std::string(value);
  match_with_mode(*entries, mode, [](std::uint16_t, std::uint16_t wanted) { return wanted; });
  return encode(*entries);
}

}  // namespace varve::fs
