// SPDX-License-Identifier: Apache-2.0
// How one entry of a directory is coded, in a page and on its own. docs/FORMAT.md §6.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/coding.h"
#include "format/dir_node.h"

namespace varve::format {

/// First byte of a node, which differs for each kind.
enum class NodeKind : std::uint8_t { kLeaf = 1, kInner = 2, kRecipe = 3, kEntry = 4 };

/// A number of entries that no version reaches, so ranks never overflow.
inline constexpr std::uint64_t kEntriesEnd = 0xffffffff;

/// The reference for coding an entry: the previous entry of the page, or an empty one.
struct EntryContext {
  std::string name;
  std::uint32_t mode = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::int64_t mtime_seconds = 0;
  Xattrs xattrs;
  ChunkId base;
  NodeId node;
};

/// References are coded as differences to the last one of the page.
void put_node_id(NodeId id, NodeId& last, std::string& out);
[[nodiscard]] NodeId get_node_id(base::ByteReader& reader, NodeId& last);

/// 1 to 255 bytes without '/' and NUL, and neither "." nor "..".
[[nodiscard]] bool is_entry_name(std::string_view name);

/// A file's type and permission bits, and nothing else.
[[nodiscard]] bool is_entry_mode(std::uint32_t mode);

/// Their number, then names and values. On malformed input, or names that do not ascend, the
/// reader fails.
void put_xattrs(const Xattrs& xattrs, base::ByteWriter& writer);
[[nodiscard]] Xattrs get_xattrs(base::ByteReader& reader);

/// A symlink's target: on what cannot be one the reader fails.
[[nodiscard]] std::string get_symlink_target(base::ByteReader& reader);

/// Names are cut by what they share with the previous one.
void put_name(std::string_view name, std::string_view previous, std::string& out);
/// Fails the reader on a name that is too long; checks nothing else.
[[nodiscard]] std::string get_name(base::ByteReader& reader, std::string_view previous);

/// Appends an entry, name included; `context` becomes the next entry's.
void put_entry(const DirEntry& entry, EntryContext& context, std::string& out);
/// Reads what put_entry wrote. On malformed input the reader fails.
[[nodiscard]] DirEntry get_entry(base::ByteReader& reader, EntryContext& context);

}  // namespace varve::format
