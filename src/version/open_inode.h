// SPDX-License-Identifier: Apache-2.0
// One file of an open version, in memory and in the overlay.
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
#include "varve/backup.h"
#include "varve/result.h"
#include "varve/types.h"
#include "version/staged_content.h"
#include "version/staging_file.h"

namespace varve::version {

/// One file of an open version. Guarded by OpenState::mutex.
///
/// The content of a regular file is in one of three states (OpenContents changes them):
/// - at rest: `recipe` holds all content;
/// - streaming: `stream` holds the content, and took over the recipe;
/// - staged: `staged` holds ranges of recipes and of a file in the staging folder.
struct OpenInode {
  Ino ino = 0;
  std::uint32_t mode = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint32_t nlink = 1;  ///< Number of names; for a directory, always 1 until removed.
  std::uint64_t rdev = 0;
  Timestamp mtime;
  Timestamp ctime;
  Timestamp atime;
  Xattrs xattrs;
  std::string symlink_target;
  Ino parent = 0;              ///< Parent, for a directory.
  std::uint64_t children = 0;  ///< Number of names in a directory.
  std::uint32_t subdirectories = 0;
  std::uint64_t size = 0;        ///< Size, for a regular file.
  std::uint64_t hole_bytes = 0;  ///< Bytes in holes, for a regular file not staged.
  /// Recipe of the content. Null only in a file of the base whose long recipe is not loaded yet;
  /// ContentStreams::load_recipe() then loads the recipe by `recipe_id`.
  std::shared_ptr<const format::Recipe> recipe;
  format::NodeId recipe_id{};
  format::NodeId base_page{};             ///< Top page, for a directory of the base.
  std::uint64_t staging = 0;              ///< Generation of the staging file; 0 if not staged.
  std::unique_ptr<StagedContent> staged;  ///< Content; set if and only if staged.

  // Members kept only in memory.
  ingest::IngestPipeline::StreamPtr stream;
  bool stream_finished = false;
  bool ends_in_hole = false;                  ///< True if the stream's last input is a hole.
  std::shared_ptr<StagingFile> staging_file;  ///< Opened when first needed.
  /// True if the disk failed to keep data of the staging file; a later sync would not report the
  /// failure again.
  bool staging_lost = false;
  std::uint64_t staged_counted = 0;  ///< Part of the inode in StagingArea::bytes().
  std::uint64_t staging_writes = 0;  ///< Number of changes to `staged`, to detect a change.
  /// True while a thread cuts the open file: the content must not change.
  bool consolidating = false;
  /// Threshold of staged bytes for cutting the open file; 0 for the usual threshold.
  std::uint64_t consolidate_at = 0;
  std::uint32_t handles = 0;
  std::uint32_t writers = 0;  ///< Number of handles open for writing.
  bool dirty = false;         ///< True if the next checkpoint must record the inode.
  bool flushing = false;      ///< True while a checkpoint writes the inode's record.
  bool held = false;          ///< True for a removed inode held by RemovedInodes.
  bool as_in_base = false;    ///< True if the inode is a file of the base, without a change.

  [[nodiscard]] bool is_directory() const { return (mode & S_IFMT) == S_IFDIR; }
  [[nodiscard]] bool is_regular() const { return (mode & S_IFMT) == S_IFREG; }
  /// Returns the attributes in the form of stat(2).
  [[nodiscard]] Attributes attributes() const;
  [[nodiscard]] OpenEntry entry() const { return {ino, attributes(), as_in_base}; }
};

/// Returns the error for an overlay with contradictory records. `what` completes the message "the
/// open version's overlay: ...".
[[nodiscard]] Error damaged_overlay(const char* what);

/// Returns the overlay's record of an inode, with the recipe made durable in the same record.
[[nodiscard]] std::string encode_open_inode(const OpenInode& inode, const format::Recipe& recipe);
/// Returns the record of an inode at rest, whose recipe may still be in the catalog.
[[nodiscard]] std::string encode_open_inode(const OpenInode& inode);
/// Decodes an overlay's record. `base_end` is the end of the base's inode numbers
/// (CloneBase::end()); 0 without a base.
/// Errors: kCorrupt on malformed bytes, and if the record refers to a base without the inode.
[[nodiscard]] Result<std::unique_ptr<OpenInode>> decode_open_inode(Ino ino, std::string_view bytes,
                                                                   Ino base_end);

}  // namespace varve::version
