// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include <algorithm>
#include <limits>

#include "base/assert.h"
#include "format/dir_entry_codec.h"

namespace varve::format {

namespace {

using base::ByteReader;
using base::ByteWriter;

// The flags in the first byte of an entry. Bit 7 is zero.
constexpr std::uint8_t kSameMode = 1U << 0;
constexpr std::uint8_t kSameOwner = 1U << 1;
constexpr std::uint8_t kWholeSecond = 1U << 2;
constexpr std::uint8_t kLinked = 1U << 3;
constexpr std::uint8_t kHasXattrs = 1U << 4;
constexpr std::uint8_t kRecipeApart = 1U << 5;
constexpr std::uint8_t kSameXattrs = 1U << 6;
constexpr std::uint8_t kFlagsKnown = 0x7f;

// Labels and ACLs are often alike throughout a directory. The bound keeps a small page from
// growing to gigabytes in memory.
constexpr std::size_t kRepeatedXattrBytesMax = 256;
constexpr std::size_t kXattrsMax = kXattrTotalBytesMax / 2;
constexpr std::uint64_t kLinkGroupEnd = 1ULL << 62;
constexpr std::uint32_t kNanosecondsEnd = 1000000000;

std::size_t bytes_of(const Xattrs& xattrs) {
  std::size_t sum = 0;
  for (const auto& xattr : xattrs) sum += xattr.name.size() + xattr.value.size();
  return sum;
}

bool repeats(const Xattrs& xattrs, const Xattrs& previous) {
  return !xattrs.empty() && xattrs == previous && bytes_of(xattrs) <= kRepeatedXattrBytesMax;
}

std::uint32_t get_u32(ByteReader& r) {
  const std::uint64_t v = r.varint();
  if (v > std::numeric_limits<std::uint32_t>::max()) r.fail();
  return static_cast<std::uint32_t>(v);
}

void put_content(const DirEntry& entry, EntryContext& context, std::string& out) {
  ByteWriter w(out);
  if (S_ISREG(entry.mode)) {
    if (entry.recipe) {
      // Both sizes follow from the recipe and are not stored.
      VARVE_ASSERT(entry.size == entry.recipe->bytes());
      VARVE_ASSERT(entry.data_bytes == entry.recipe->data_bytes());
      encode_recipe(*entry.recipe, context.base, out);
    } else {
      VARVE_ASSERT(entry.data_bytes <= entry.size);
      w.varint(entry.size);
      w.varint(entry.size - entry.data_bytes);
      put_node_id(entry.recipe_id, context.node, out);
    }
  } else if (S_ISDIR(entry.mode)) {
    put_node_id(entry.child, context.node, out);
    w.varint(entry.subtree_entries);
    w.varint(entry.subdirectories);
  } else if (S_ISLNK(entry.mode)) {
    w.sized_text(entry.symlink_target);
  } else if (S_ISCHR(entry.mode) || S_ISBLK(entry.mode)) {
    w.varint(entry.rdev);
  }
}

void get_content(ByteReader& r, bool recipe_apart, EntryContext& context, DirEntry& entry) {
  if (S_ISREG(entry.mode)) {
    if (recipe_apart) {
      entry.size = r.varint();
      const std::uint64_t hole_bytes = r.varint();
      if (entry.size > std::numeric_limits<std::int64_t>::max() || hole_bytes > entry.size) {
        r.fail();
      }
      entry.data_bytes = entry.size - hole_bytes;
      entry.recipe_id = get_node_id(r, context.node);
    } else {
      entry.recipe = decode_recipe(r, context.base);
      entry.size = entry.recipe->bytes();
      entry.data_bytes = entry.recipe->data_bytes();
    }
  } else if (S_ISDIR(entry.mode)) {
    entry.child = get_node_id(r, context.node);
    entry.subtree_entries = r.varint();
    entry.subdirectories = get_u32(r);
    if (entry.subdirectories > entry.subtree_entries || entry.subtree_entries >= kEntriesEnd)
      r.fail();
  } else if (S_ISLNK(entry.mode)) {
    entry.symlink_target = get_symlink_target(r);
  } else if (S_ISCHR(entry.mode) || S_ISBLK(entry.mode)) {
    entry.rdev = r.varint();
  }
}

}  // namespace

void put_node_id(NodeId id, NodeId& last, std::string& out) {
  // The difference wraps around, so any two ids have a difference.
  ByteWriter(out).svarint(static_cast<std::int64_t>(id.value - last.value));
  last = id;
}

NodeId get_node_id(ByteReader& r, NodeId& last) {
  last.value += static_cast<std::uint64_t>(r.svarint());
  return last;
}

bool is_entry_name(std::string_view name) {
  return !name.empty() && name.size() <= kNameBytesMax && name != "." && name != ".." &&
         name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

void put_xattrs(const Xattrs& xattrs, ByteWriter& w) {
  w.varint(xattrs.size());
  for (const auto& xattr : xattrs) {
    w.sized_text(xattr.name);
    w.sized_text(xattr.value);
  }
}

Xattrs get_xattrs(ByteReader& r) {
  Xattrs xattrs;
  const std::uint64_t n = r.varint();
  if (n > kXattrsMax || n > r.left() / 2) {
    r.fail();
    return {};
  }
  xattrs.reserve(n);
  std::size_t total = 0;
  for (std::uint64_t i = 0; i < n && r.ok(); ++i) {
    Xattr xattr;
    xattr.name = r.sized_text(kNameBytesMax);
    xattr.value = r.sized_text(kXattrValueBytesMax);
    total += xattr.name.size() + xattr.value.size();
    if (xattr.name.empty() || xattr.name.find('\0') != std::string::npos ||
        (!xattrs.empty() && xattr.name <= xattrs.back().name) || total > kXattrTotalBytesMax) {
      r.fail();
    }
    xattrs.push_back(std::move(xattr));
  }
  return xattrs;
}

bool is_entry_mode(std::uint32_t mode) {
  if (mode > (S_IFMT | 07777U)) return false;
  return S_ISREG(mode) || S_ISDIR(mode) || S_ISLNK(mode) || S_ISCHR(mode) || S_ISBLK(mode) ||
         S_ISFIFO(mode) || S_ISSOCK(mode);
}

std::string get_symlink_target(ByteReader& r) {
  std::string target(r.sized_text(kSymlinkBytesMax));
  if (target.empty() || target.find('\0') != std::string::npos) r.fail();
  return target;
}

void put_name(std::string_view name, std::string_view previous, std::string& out) {
  const auto shared = static_cast<std::size_t>(
      std::mismatch(name.begin(), name.end(), previous.begin(), previous.end()).first -
      name.begin());
  ByteWriter w(out);
  w.varint(shared);
  w.sized_text(name.substr(shared));
}

std::string get_name(ByteReader& r, std::string_view previous) {
  const std::uint64_t shared = r.varint();
  if (shared > previous.size()) {
    r.fail();
    return {};
  }
  std::string name(previous.substr(0, shared));
  name += r.sized_text(kNameBytesMax - shared);
  return name;
}

void put_entry(const DirEntry& entry, EntryContext& context, std::string& out) {
  VARVE_ASSERT(is_entry_mode(entry.mode));
  VARVE_ASSERT(entry.mtime.nanoseconds < kNanosecondsEnd);
  const bool linked = entry.nlink != 1 || entry.link_group != 0;
  const bool same_xattrs = repeats(entry.xattrs, context.xattrs);
  const bool has_xattrs = !entry.xattrs.empty() && !same_xattrs;
  const bool same_owner = entry.uid == context.uid && entry.gid == context.gid;
  unsigned flags = 0;
  if (entry.mode == context.mode) flags |= kSameMode;
  if (same_owner) flags |= kSameOwner;
  if (entry.mtime.nanoseconds == 0) flags |= kWholeSecond;
  if (linked) flags |= kLinked;
  if (has_xattrs) flags |= kHasXattrs;
  if (S_ISREG(entry.mode) && !entry.recipe) flags |= kRecipeApart;
  if (same_xattrs) flags |= kSameXattrs;

  ByteWriter w(out);
  w.u8(static_cast<std::uint8_t>(flags));
  put_name(entry.name, context.name, out);
  if (entry.mode != context.mode) w.varint(entry.mode);
  if (!same_owner) {
    w.varint(entry.uid);
    w.varint(entry.gid);
  }
  // The difference wraps around, so any two times have a difference.
  w.svarint(static_cast<std::int64_t>(static_cast<std::uint64_t>(entry.mtime.seconds) -
                                      static_cast<std::uint64_t>(context.mtime_seconds)));
  if (entry.mtime.nanoseconds != 0) w.u32(entry.mtime.nanoseconds);
  if (linked) {
    w.varint(entry.nlink);
    w.varint(entry.link_group);
  }
  if (has_xattrs) put_xattrs(entry.xattrs, w);
  put_content(entry, context, out);

  context.name = entry.name;
  context.mode = entry.mode;
  context.uid = entry.uid;
  context.gid = entry.gid;
  context.mtime_seconds = entry.mtime.seconds;
  context.xattrs = entry.xattrs;
}

DirEntry get_entry(ByteReader& r, EntryContext& context) {
  DirEntry entry;
  const std::uint8_t flags = r.u8();
  if ((flags & ~kFlagsKnown) != 0) r.fail();
  entry.name = get_name(r, context.name);
  entry.mode = (flags & kSameMode) != 0 ? context.mode : get_u32(r);
  const bool same_owner = (flags & kSameOwner) != 0;
  entry.uid = same_owner ? context.uid : get_u32(r);
  entry.gid = same_owner ? context.gid : get_u32(r);
  entry.mtime.seconds = static_cast<std::int64_t>(
      static_cast<std::uint64_t>(context.mtime_seconds) + static_cast<std::uint64_t>(r.svarint()));
  if ((flags & kWholeSecond) == 0) {
    entry.mtime.nanoseconds = r.u32();
    if (entry.mtime.nanoseconds == 0 || entry.mtime.nanoseconds >= kNanosecondsEnd) r.fail();
  }
  if ((flags & kLinked) != 0) {
    entry.nlink = get_u32(r);
    entry.link_group = r.varint();
    if (entry.link_group >= kLinkGroupEnd) r.fail();
  }
  if ((flags & kHasXattrs) != 0) {
    entry.xattrs = get_xattrs(r);
    if (entry.xattrs.empty() || (flags & kSameXattrs) != 0) r.fail();
  } else if ((flags & kSameXattrs) != 0) {
    entry.xattrs = context.xattrs;
    if (!repeats(entry.xattrs, context.xattrs)) r.fail();
  }
  const bool recipe_apart = (flags & kRecipeApart) != 0;
  if (!is_entry_mode(entry.mode) || (recipe_apart && !S_ISREG(entry.mode))) r.fail();
  if (!r.ok()) return entry;
  get_content(r, recipe_apart, context, entry);

  context.name = entry.name;
  context.mode = entry.mode;
  context.uid = entry.uid;
  context.gid = entry.gid;
  context.mtime_seconds = entry.mtime.seconds;
  context.xattrs = entry.xattrs;
  return entry;
}

}  // namespace varve::format
