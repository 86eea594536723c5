// SPDX-License-Identifier: Apache-2.0
// The codec of one entry of a directory, in a page and on its own. docs/FORMAT.md §6.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/coding.h"
#include "format/dir_node.h"

namespace varve::format {

/// First byte of a node: the kind of the node.
enum class NodeKind : std::uint8_t { kLeaf = 1, kInner = 2, kRecipe = 3, kEntry = 4 };

/// Limit on the number of entries: no version reaches the limit, so ranks never overflow.
inline constexpr std::uint64_t kEntriesEnd = 0xffffffff;

/// The reference for coding an entry: the previous entry of the page, or an empty context.
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

/// Encode and decode a reference, as the difference to the last reference of the page.
void put_node_id(NodeId id, NodeId& last, std::string& out);
[[nodiscard]] NodeId get_node_id(base::ByteReader& reader, NodeId& last);

/// Returns whether a name has 1 to 255 bytes without '/' and NUL, and is neither "." nor "..".
[[nodiscard]] bool is_entry_name(std::string_view name);

/// Returns whether `mode` has a file type and permission bits, and nothing else.
[[nodiscard]] bool is_entry_mode(std::uint32_t mode);

/// Encode and decode the number of attributes, then names and values. Fails the reader on malformed
/// input, and on names that do not ascend.
void put_xattrs(const Xattrs& xattrs, base::ByteWriter& writer);
[[nodiscard]] Xattrs get_xattrs(base::ByteReader& reader);

/// Reads a symlink's target. Fails the reader on an impossible target.
[[nodiscard]] std::string get_symlink_target(base::ByteReader& reader);

/// Appends a name without the prefix shared with the previous name.
void put_name(std::string_view name, std::string_view previous, std::string& out);
/// Fails the reader on a name of more than kNameBytesMax bytes; checks nothing else.
[[nodiscard]] std::string get_name(base::ByteReader& reader, std::string_view previous);

/// Appends an entry, name included; `context` becomes the context of the next entry.
void put_entry(const DirEntry& entry, EntryContext& context, std::string& out);
/// Reads the output of put_entry(). Fails the reader on malformed input.
[[nodiscard]] DirEntry get_entry(base::ByteReader& reader, EntryContext& context);

}  // namespace varve::format
