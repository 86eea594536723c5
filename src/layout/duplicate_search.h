// SPDX-License-Identifier: Apache-2.0
// Finds the chunks of the pool whose content is stored under several ids.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/id_runs.h"
#include "base/ids.h"
#include "format/alias_file.h"
#include "format/fingerprinter.h"
#include "layout/content_check.h"
#include "layout/pool_store.h"
#include "meta/lmdb.h"
#include "store/record_buckets.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::layout {

struct DuplicateSearchParts {
  PoolStore* pool = nullptr;
  const meta::Env* catalog = nullptr;
  const format::Fingerprinter* fingerprinter = nullptr;
  store::FolderPath folder;    ///< The pool's folder, for files to sort in.
  base::IdRuns kept;           ///< Chunks that must not become aliases.
  base::IdRuns lost;           ///< Chunks in quarantine: neither aliases nor targets.
  VersionNumber births_end{};  ///< Chunks of this birth and of later births are left out.
  /// Returns how many consecutive chunks of a birth are needed, in both places, to become aliases.
  std::function<std::uint32_t(VersionNumber birth)> run_chunks_min;
  std::function<bool()> stop{};  ///< Called often; may be empty.
  /// Called with the bytes read since the last call; may be empty.
  std::function<void(std::uint64_t bytes)> pass{};
  std::size_t runs_max = 1U << 20;  ///< Maximum number of runs to return; 24 bytes each.
};

struct Duplicates {
  std::vector<format::AliasRun> runs;  ///< Ascending. No target is in a run.
  bool all = true;                     ///< False if the search stopped at runs_max.
  std::uint64_t chunks_compared = 0;
  std::uint64_t bytes_read = 0;
  std::set<ContainerNumber> damaged;  ///< Containers whose header or content cannot be read.
  std::uint64_t bytes_sorted = 0;     ///< Bytes written to files for sorting, and read back.
};

/// Compares the fingerprints in the tables of all containers of the pool, by sorting the
/// fingerprints in bounded memory. Of chunks with the same fingerprint, younger chunks may become
/// aliases of an older chunk. The search chooses consecutive targets, so that readers find runs.
/// The search knows two older copies of each chunk, and finds further copies beside the last
/// target.
///
/// Source: the post-processing pass of SLADE (Wu et al., TPDS'18). We differ by the choice among
/// the older copies, and by reading tables in place of a log of fingerprints.
class DuplicateSearch {
 public:
  explicit DuplicateSearch(DuplicateSearchParts parts) : parts_(std::move(parts)) {}

  /// Returns nullopt if stopped.
  /// Errors: the errors of reading the catalog and of sorting.
  [[nodiscard]] Result<std::optional<Duplicates>> run();

 private:
  /// A location run without its size.
  struct Place {
    ChunkId first;
    std::uint32_t count = 0;
    ContainerNumber container{};
  };
  /// A chunk with older copies.
  struct Copy {
    ChunkId id;
    ChunkId oldest;
    ChunkId previous;  ///< The copy with the next lower id; may be the oldest.
  };

  [[nodiscard]] Result<void> list_places();
  [[nodiscard]] Result<bool> read_tables(store::RecordBuckets& fingerprints);
  [[nodiscard]] Result<bool> find_copies(store::RecordBuckets& fingerprints,
                                         store::RecordBuckets& copies);
  [[nodiscard]] Result<void> add_group(std::span<const store::SortRecord> group,
                                       store::RecordBuckets& copies);
  [[nodiscard]] Result<bool> choose_runs(store::RecordBuckets& copies);
  void choose_in_segment();
  [[nodiscard]] std::uint32_t chain(std::size_t at, ChunkId target);
  [[nodiscard]] bool is_kept(ChunkId id, ChunkId start) const;
  [[nodiscard]] bool is_same(ChunkId copy, ChunkId target);
  [[nodiscard]] std::optional<ChunkId> kept_copy(std::size_t at, ChunkId start) const;
  [[nodiscard]] bool is_stopped() const { return parts_.stop && parts_.stop(); }
  void pass(std::uint64_t bytes);

  const DuplicateSearchParts parts_;
  std::vector<Place> places_;  // Ascending by chunk.
  base::IdRuns located_;
  std::vector<ContainerNumber> containers_;
  std::vector<Copy> segment_;  // Consecutive chunks with copies.
  Duplicates found_;
  std::set<ContainerNumber> damaged_;    // Containers found damaged by the next members.
  std::optional<ContentCheck> of_copy_;  // Reads the tables of containers, as does of_target_.
  std::optional<ContentCheck> of_target_;
};

}  // namespace varve::layout
