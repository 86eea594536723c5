// SPDX-License-Identifier: Apache-2.0
// Turns the overlay of a frozen version into an immutable tree.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/id_runs.h"
#include "catalog/dir_tree.h"
#include "catalog/object_store.h"
#include "catalog/series_catalog.h"
#include "meta/lmdb.h"
#include "varve/result.h"
#include "version/open_inode.h"

namespace varve::version {

/// What sealing found out; the caller commits it.
struct SealedTree {
  format::DirEntry root;  ///< With its top page.
  base::IdRuns chunks;    ///< All that the version refers to.
  std::uint64_t entries = 0;
  std::uint64_t logical_bytes = 0;
  std::vector<std::uint32_t> rank_of;  ///< By ino; SealOutcome::kNoRank where there is none.
};

/// One use. Walks the tree once, depth first; its memory is the path to the present entry,
/// the set of chunk runs and 4 bytes an inode.
class Sealer {
 public:
  /// `parent`: the root of the version before, whose unchanged pages are shared; or null.
  /// `inos`: one more than the highest inode number.
  Sealer(const meta::Env& overlay, catalog::ObjectReader& stored, catalog::ObjectWriter& objects,
         const format::DirEntry* parent, Ino inos);
  ~Sealer();

  /// Stores every page and long recipe that is new. A crash before the version's commit
  /// leaves only unreachable objects (docs/ORDERING.md O3).
  [[nodiscard]] Result<SealedTree> seal();

 private:
  struct Level;
  [[nodiscard]] Result<std::unique_ptr<OpenInode>> load(Ino ino);
  [[nodiscard]] Result<void> enter(Ino ino, std::string_view name, std::uint64_t path_hash);
  /// The directory that the parent version has in this place; 0 if none.
  [[nodiscard]] format::NodeId previous_of(std::string_view name);
  /// Steps to the next name of the innermost directory; false at its end.
  [[nodiscard]] Result<bool> step();
  [[nodiscard]] Result<void> leave(SealedTree& tree);
  [[nodiscard]] Result<format::DirEntry> entry_of(const OpenInode& inode, std::string_view name,
                                                  std::uint64_t path_hash);
  void count_chunks(const format::Recipe& recipe);
  std::uint64_t link_group(Ino ino, std::uint64_t path_hash);

  const meta::Env& overlay_;
  catalog::ObjectReader& stored_;
  catalog::ObjectWriter& objects_;
  const format::DirEntry* const parent_;
  std::vector<std::unique_ptr<Level>> path_;
  std::vector<std::uint32_t> rank_of_;
  std::vector<base::IdRun> runs_;
  std::size_t runs_compact_at_ = 1U << 20;
  std::unordered_map<Ino, std::uint64_t> group_of_;
  std::unordered_set<std::uint64_t> groups_;
  std::uint32_t next_rank_ = 0;
  std::uint64_t logical_bytes_ = 0;
};

}  // namespace varve::version
