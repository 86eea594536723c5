// SPDX-License-Identifier: Apache-2.0
// Turns the overlay of a frozen version, and the base below the overlay, into an immutable tree.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "catalog/chunk_references.h"
#include "catalog/dir_tree.h"
#include "catalog/link_table.h"
#include "catalog/object_store.h"
#include "catalog/series_catalog.h"
#include "meta/lmdb.h"
#include "varve/mount.h"
#include "varve/result.h"
#include "version/clone_base.h"
#include "version/open_inode.h"

namespace varve::version {

/// The result of sealing, to be committed by the caller.
struct SealedTree {
  format::DirEntry root;  ///< Root directory, with its top page.
  /// References to chunks from the readable part of the version. If `counts_changes`, only the
  /// changes since the base.
  catalog::ReferenceCounts references;
  bool counts_changes = false;
  /// True if a part of the base could not be read. The version may then refer to any chunk of the
  /// base.
  bool damaged = false;
  catalog::LinkTable links;
  std::uint64_t entries = 0;
  std::uint64_t logical_bytes = 0;
  RankTable rank_of;
};

/// Builds the pages of a sealed tree in one walk, depth first. Not thread-safe, for one use.
///
/// The memory holds the path to the current entry, the runs of chunks, 5 bytes for each new or
/// changed inode, 4 more for each changed inode of the base, and 16 bytes for each name of a
/// hard-linked file.
///
/// If nothing changed below a directory of the base, the new tree shares the directory's pages. The
/// ranks of all entries below a directory follow the directory's rank. So the directory is
/// unchanged if no changed file has a rank in the range.
///
/// The overlay has a record of each changed or removed file of the base. So the sealer computes the
/// version's references and bytes from the base's counts: subtracts the counts of the changed and
/// removed files of the base, and adds the counts of the new and changed files. The sealer does not
/// read unchanged directories.
class Sealer {
 public:
  /// `parent` is the root of the previous version, whose unchanged pages are shared; may be null.
  /// `base` is the base of the version; may be null. If `count_changes`, the sealer counts only the
  /// changes since the base, unless the changes cannot be read.
  /// Lifetime: every argument must outlive the sealer.
  Sealer(const meta::Env& overlay, catalog::ObjectReader& stored, catalog::ObjectWriter& objects,
         const format::DirEntry* parent, const CloneBase* base, bool count_changes);
  ~Sealer();

  /// Stores every new page and every new long recipe. A crash before the version's commit leaves
  /// only unreachable objects (docs/ORDERING.md O3).
  [[nodiscard]] Result<SealedTree> seal();

 private:
  struct Level;
  [[nodiscard]] Result<void> check_at_rest() const;
  /// Finds the ranks of the base whose entry or directory differs in the overlay.
  [[nodiscard]] Result<void> find_changes();
  /// Subtracts the removed files of the base, and the files with changed content.
  [[nodiscard]] Result<void> subtract_changed(const std::vector<std::uint32_t>& ranks);
  [[nodiscard]] bool unchanged(Rank first, std::uint64_t count) const;
  [[nodiscard]] Result<std::unique_ptr<OpenInode>> load(Ino ino);
  [[nodiscard]] Result<void> enter(Ino ino, std::string_view name, std::uint64_t path_hash);
  /// Returns the directory of the parent version at the same path; 0 if there is none.
  [[nodiscard]] format::NodeId previous_of(std::string_view name);
  /// Reads the next names of the overlay, once the walk has passed all names read so far.
  [[nodiscard]] Result<void> read_names(Level& level) const;
  /// Steps to the next name of the innermost directory. Returns false at the directory's end.
  [[nodiscard]] Result<bool> step();
  [[nodiscard]] Result<void> add(Ino ino, std::string_view name);
  /// Adds an unchanged entry of the base, with everything below the entry.
  [[nodiscard]] Result<void> take(const catalog::TreeEntry& found);
  /// Counts the files of an unchanged entry. `repeated`: the ranks of the second and further names
  /// of hard-linked files, ascending.
  [[nodiscard]] Result<void> count_below(const catalog::TreeEntry& found,
                                         const std::vector<Rank>& repeated);
  [[nodiscard]] Result<void> leave(SealedTree& tree);
  [[nodiscard]] Result<format::DirEntry> entry_of(const OpenInode& inode, std::string_view name,
                                                  std::uint64_t path_hash);
  [[nodiscard]] Result<std::uint32_t> take_ranks(std::uint64_t count);
  [[nodiscard]] Result<void> count_new(const OpenInode& inode, const format::DirEntry& entry);
  [[nodiscard]] Result<void> count_file(const format::DirEntry& entry, int sign);
  void count_chunks(const format::Recipe& recipe, int sign);
  std::uint64_t link_group(Ino ino, std::uint64_t path_hash);

  const meta::Env& overlay_;
  catalog::ObjectReader& stored_;
  catalog::ObjectWriter& objects_;
  const format::DirEntry* const parent_;
  const CloneBase* const base_;
  bool count_changes_;
  std::vector<std::uint32_t> changed_;      // Ranks of the base, ascending.
  std::vector<std::uint64_t> base_groups_;  // Link groups of the base, ascending.
  std::vector<catalog::LinkTable::Entry> links_;
  bool damaged_ = false;
  std::vector<std::unique_ptr<Level>> path_;
  RankTable rank_of_;
  catalog::ReferenceCounts references_;
  std::unordered_map<Ino, std::uint64_t> group_of_;
  std::unordered_set<std::uint64_t> groups_;
  std::uint32_t next_rank_ = 0;
  std::uint64_t logical_bytes_ = 0;  // Modulo 2^64, if only changes are counted.
};

}  // namespace varve::version
