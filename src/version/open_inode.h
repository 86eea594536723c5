// SPDX-License-Identifier: Apache-2.0
// One file of an open version, as it is in memory and in the overlay.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "format/dir_node.h"
#include "format/recipe.h"
#include "ingest/ingest_pipeline.h"
#include "io/file_system.h"
#include "varve/result.h"
#include "varve/types.h"
#include "varve/version_writer.h"
#include "version/staged_content.h"

namespace varve::version {

/// Guarded by its OpenVersion's mutex.
///
/// A regular file's content is in one of three states: at rest (`recipe`), streaming
/// (`stream`, which took over the recipe), or staged (`staged`: ranges of recipes and of a
/// file of the staging folder).
struct OpenInode {
  Ino ino = 0;
  std::uint32_t mode = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint32_t nlink = 1;  ///< Names; of a directory always 1.
  std::uint64_t rdev = 0;
  Timestamp mtime;
  Timestamp ctime;
  Timestamp atime;
  Xattrs xattrs;
  std::string symlink_target;
  Ino parent = 0;              ///< Of a directory.
  std::uint64_t children = 0;  ///< Names in a directory.
  std::uint32_t subdirectories = 0;
  std::uint64_t size = 0;        ///< Of a regular file.
  std::uint64_t hole_bytes = 0;  ///< Unless staged.
  /// Null only in a file of the base whose long recipe was not needed yet:
  /// OpenVersion::load_recipe() brings it from `recipe_id`, which means nothing otherwise.
  std::shared_ptr<const format::Recipe> recipe;
  format::NodeId recipe_id{};
  format::NodeId base_page{};             ///< Of a directory of the base: its top page there.
  std::uint64_t staging = 0;              ///< Generation of the staging file; 0 if not staged.
  std::unique_ptr<StagedContent> staged;  ///< Set if and only if staged.

  // Only in memory.
  ingest::IngestPipeline::StreamPtr stream;
  bool stream_finished = false;
  bool ends_in_hole = false;               ///< What the stream was given last is a hole.
  std::shared_ptr<io::File> staging_file;  ///< Opened when it is first needed.
  /// The disk failed to keep what the staging file was given; a later sync would not say so again.
  bool staging_lost = false;
  std::uint64_t staged_counted = 0;  ///< Of `staged`, in OpenVersion's sum.
  std::uint64_t staging_writes = 0;  ///< Changes to `staged`, to notice new ones.
  bool consolidating = false;        ///< Being cut while it is open: its content must not change.
  std::uint64_t consolidate_at = 0;  ///< Staged bytes that ask for that; 0 for the usual number.
  std::uint32_t handles = 0;
  std::uint32_t writers = 0;
  bool dirty = false;
  bool flushing = false;
  bool held = false;  ///< Without a name, but the caller has not forgotten it.

  [[nodiscard]] bool is_directory() const { return (mode & S_IFMT) == S_IFDIR; }
  [[nodiscard]] bool is_regular() const { return (mode & S_IFMT) == S_IFREG; }
  [[nodiscard]] Attributes attributes() const;
};

/// The overlay's record of an inode, with the recipe that is durable with it.
[[nodiscard]] std::string encode_open_inode(const OpenInode& inode, const format::Recipe& recipe);
/// The same of an inode at rest, whose recipe may still be in the catalog.
[[nodiscard]] std::string encode_open_inode(const OpenInode& inode);
/// `base_end`: the first number that is not of a file of the base; 0 without one. kCorrupt on
/// malformed bytes, and on what refers to a base but is not of it.
[[nodiscard]] Result<std::unique_ptr<OpenInode>> decode_open_inode(Ino ino, std::string_view bytes,
                                                                   Ino base_end);

}  // namespace varve::version
