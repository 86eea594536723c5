// SPDX-License-Identifier: Apache-2.0
// Structures that several tests of the formats share.
#pragma once

#include <sys/stat.h>

#include <string>
#include <vector>

#include "base/coding.h"
#include "format/container.h"
#include "format/dir_node.h"

namespace varve::format {

/// Text that zstd shrinks.
inline std::string compressible_text(std::size_t bytes) {
  std::string text;
  for (unsigned i = 0; text.size() < bytes; ++i) {
    text += "line " + std::to_string(i) + " of a varve\n";
  }
  text.resize(bytes);
  return text;
}

inline ChunkEntry chunk(ChunkId id, std::uint32_t raw_bytes) {
  ChunkEntry entry;
  entry.id = id;
  entry.raw_bytes = raw_bytes;
  for (std::size_t i = 0; i < entry.fingerprint.size(); ++i) {
    entry.fingerprint[i] = static_cast<std::byte>(id.value * 7 + i);
  }
  return entry;
}

/// Two frames, five chunks, three runs of ids over two births.
inline ContainerHeader sample_header() {
  ContainerHeader header;
  header.store = StoreId{3};
  header.number = ContainerNumber{77};
  const auto id = [](std::uint32_t birth, std::uint32_t ordinal) {
    return ChunkId::make(VersionNumber{birth}, ordinal);
  };
  header.chunks = {chunk(id(5, 100), 3000), chunk(id(5, 101), 65536), chunk(id(6, 0), 1),
                   chunk(id(6, 1), 9999), chunk(id(6, 9), 100)};
  FrameEntry plain;
  plain.chunk_count = 2;
  plain.stored_bytes = plain.raw_bytes = 68536;
  plain.checksum = 0x1122334455667788;
  FrameEntry packed;
  packed.chunk_count = 3;
  packed.stored_bytes = 5000;
  packed.raw_bytes = 10100;
  packed.codec = Codec::kZstd;
  packed.checksum = 0x99aabbccddeeff00;
  header.frames = {plain, packed};
  return header;
}

inline NodeId sample_node(unsigned char seed) {
  return NodeId::make(static_cast<VersionNumber>(1 + seed % 3), seed * 1000U);
}

inline DirEntry plain_file(std::string name) {
  DirEntry entry;
  entry.name = std::move(name);
  entry.mode = S_IFREG | 0644;
  entry.recipe.emplace();
  return entry;
}

/// One entry of every type and kind, names ascending.
inline LeafPage sample_leaf() {
  LeafPage page;
  const auto add = [&](std::string name, std::uint32_t mode) -> DirEntry& {
    DirEntry& entry = page.entries.emplace_back();
    entry.name = std::move(name);
    entry.mode = mode;
    entry.uid = 1000;
    entry.gid = 100;
    entry.mtime = {1700000000, 0};
    return entry;
  };
  add("block", S_IFBLK | 0660).rdev = 0x801;
  add("character", S_IFCHR | 0666).rdev = 0x103;
  DirEntry& directory = add("directory", S_IFDIR | 01777);
  directory.child = sample_node(1);
  directory.subtree_entries = 1000000;
  directory.subdirectories = 12;
  add("empty", S_IFREG | 04755).recipe.emplace();
  add("fifo", S_IFIFO | 0600).mtime = {-1, 999999999};
  DirEntry& file = add("file", S_IFREG | 0644);
  file.recipe.emplace();
  file.recipe->append_chunk(ChunkId::make(VersionNumber{4}, 9), 8000);
  file.recipe->append_chunk(ChunkId::make(VersionNumber{4}, 10), 100);
  file.recipe->append_hole(1U << 20);
  file.recipe->append_chunk(ChunkId::make(VersionNumber{2}, 3), 5);
  file.size = file.recipe->bytes();
  file.data_bytes = file.recipe->data_bytes();
  file.xattrs = {{"security.capability", std::string("\0\1\2", 3)}, {"user.note", ""}};
  DirEntry& again = add("file2", S_IFREG | 0644);
  again.recipe.emplace();
  again.recipe->append_chunk(ChunkId::make(VersionNumber{2}, 4), 77);
  again.size = again.data_bytes = 77;
  again.xattrs = file.xattrs;
  DirEntry& linked = add("linked", S_IFREG | 0444);
  linked.nlink = 3;
  linked.link_group = (1ULL << 62) - 1;
  linked.size = 1ULL << 40;
  linked.data_bytes = 4096;
  linked.recipe_id = sample_node(50);
  linked.uid = 0xffffffff;
  linked.mtime = {1700000001, 123456789};
  add("socket", S_IFSOCK | 0755);
  add("symlink", S_IFLNK | 0777).symlink_target = "../some/where";
  return page;
}

inline InnerPage sample_inner() {
  InnerPage page;
  page.refs = {{"alpha", sample_node(1), 40, 40},
               {"alphabet", sample_node(2), 1, 4000000000ULL},
               {"\xff\xfe", sample_node(3), 70000, 70001}};
  return page;
}

}  // namespace varve::format
