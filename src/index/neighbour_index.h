// SPDX-License-Identifier: Apache-2.0
// The neighbour index: the chunks of the previous versions and of the version being written
// (MFDedup's neighbour-duplicate-focus index, FAST'21 §3.1).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/id_runs.h"
#include "index/beside_cache.h"
#include "index/fingerprint_index.h"
#include "index/index_metrics.h"
#include "index/run_set.h"
#include "index/stored_fingerprints.h"
#include "index/tag_table.h"
#include "index/told_ids.h"
#include "varve/result.h"

namespace varve::index {

/// The place of an index on disk.
struct IndexStorage {
  RunFolder folder;
  /// Confirms each chunk named by a run, because runs are derived data. Must outlive the last
  /// lookup.
  StoredFingerprints* stored = nullptr;
  std::size_t memory_bytes = std::size_t{256} << 20;  ///< Budget for tables and caches.
};

/// Entries in memory, and runs on disk.
///
/// New entries go to a table. When the table has used its part of the budget, and when the index is
/// saved, the table becomes a run. A lookup searches the table, then the neighbours of recently
/// found chunks (Zhu et al., FAST'08 §4.2), then the runs, newest first. An entry counts only if
/// its chunk is in `base` or of the version being written.
class NeighbourIndex final : public FingerprintIndex {
 public:
  /// Creates an empty index over `base` for the version `own`, in memory only: without a budget.
  NeighbourIndex(base::IdRuns base, VersionNumber own);
  /// Creates an empty index with runs.
  NeighbourIndex(base::IdRuns base, VersionNumber own, IndexStorage storage);

  NeighbourIndex(const NeighbourIndex&) = delete;
  NeighbourIndex& operator=(const NeighbourIndex&) = delete;
  ~NeighbourIndex() override;

  /// Opens the runs of a snapshot. Logs and leaves out damaged runs.
  void open_runs(const std::vector<RunRef>& refs);
  /// Imports the entries of a snapshot of layout 1.
  /// Errors: kCorrupt; the errors of writing a run.
  [[nodiscard]] Result<void> import(io::File& snapshot, VersionNumber version);
  /// Returns the chunks of base() that were never added to the index.
  [[nodiscard]] base::IdRuns missing() const;
  /// Counts `ids` as covered, including ids without an entry.
  void note_covered(const base::IdRuns& ids) { told_.add(ids); }
  /// Writes the table as a run, merges runs, and returns the runs to name in a snapshot. All
  /// entries with ids in `live` stay. Must not be called during a lookup. A failed merge only
  /// leaves more runs.
  /// Errors: the errors of writing a file.
  [[nodiscard]] Result<std::vector<RunRef>> save(const base::IdRuns& live);

  /// Counts the entries, and all lookups from now on. Must be called at most once, before the first
  /// lookup.
  /// Lifetime: `metrics` must outlive the counting, which ends at stop_counting() or with the
  /// index.
  void count_in(const IndexMetrics& metrics);
  /// Ends the counting. Must not be called during a lookup.
  void stop_counting();

  void find(std::span<const Fingerprint> fingerprints,
            std::span<std::optional<ChunkId>> ids) const override;
  void insert(const Fingerprint& fingerprint, ChunkId id) override;
  void replace(const Fingerprint& fingerprint, ChunkId id) override;
  /// Also counts the entries of chunks that left the window after the write of their run.
  [[nodiscard]] std::size_t size() const override { return entries_; }
  [[nodiscard]] std::uint32_t covers(ChunkId first, std::uint32_t count) const override;
  /// Hides `ids` of the neighbours from find() and covers(). A concurrent find() may still return a
  /// hidden chunk. Only one thread at a time may call retire(). Returns the newly hidden chunks.
  base::IdRuns retire(const base::IdRuns& ids);
  /// Reverts retire() for `ids`.
  void restore(const base::IdRuns& ids);
  /// Returns the chunks covered by the index besides the chunks of the version being written.
  [[nodiscard]] const base::IdRuns& base() const { return base_; }
  /// Returns the number of blocks of runs that lookups have read from the disk.
  [[nodiscard]] std::uint64_t blocks_read() const { return disk_ ? disk_->runs.blocks_read() : 0; }

 private:
  /// The parts of an index on disk.
  struct Disk {
    Disk(IndexStorage storage, NeighbourIndex& index);
    NeighbourIndex& owner;  // A lookup that finds damage rebuilds a part of the index.
    RunSet runs;
    StoredFingerprints* const stored;
    const std::size_t table_bytes_max;
    BesideCache beside;
    LookAhead ahead;
  };

  [[nodiscard]] bool is_usable(ChunkId id) const;
  [[nodiscard]] std::optional<ChunkId> find_in_table(const Tag& tag) const;
  [[nodiscard]] std::optional<ChunkId> find_stored(const Fingerprint& fingerprint,
                                                   const Tag& tag) const;
  [[nodiscard]] std::optional<ChunkId> find_any(const Fingerprint& fingerprint) const;
  /// Reads the chunks from `id` on in the container, and checks the fingerprint of `id`.
  [[nodiscard]] RunSet::Verdict confirm(ChunkId id, bool is_new,
                                        const Fingerprint& fingerprint) const;
  /// Restores the entries of damaged runs from containers.
  void rebuild_lost();
  /// Writes the table as a run. Leaves out chunks outside `live`; a null `live` keeps all.
  [[nodiscard]] Result<void> spill(const base::IdRuns* live);
  void put(const Tag& tag, ChunkId id);

  void set_retired(base::IdRuns ids);
  [[nodiscard]] bool is_retired(ChunkId id) const {
    const base::IdRuns* const retired = retired_.load(std::memory_order_acquire);
    return retired != nullptr && retired->contains(id);
  }

  const base::IdRuns base_;
  const VersionNumber own_;
  TagTable table_;
  ToldIds told_;  // Chunks added to the table.
  std::unique_ptr<Disk> disk_;
  std::atomic<const base::IdRuns*> retired_{nullptr};
  // Every set that retired_ ever pointed to: a lookup may still use an older set.
  std::vector<std::unique_ptr<const base::IdRuns>> retired_sets_;
  std::size_t entries_ = 0;
  const IndexMetrics* metrics_ = nullptr;
};

}  // namespace varve::index
