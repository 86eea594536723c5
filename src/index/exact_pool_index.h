// SPDX-License-Identifier: Apache-2.0
// The exact index of the pool: knows every chunk, in a table in memory and in runs on disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/id_runs.h"
#include "index/beside_cache.h"
#include "index/filtered_run.h"
#include "index/pool_index.h"
#include "index/pool_runs.h"
#include "index/stored_fingerprints.h"
#include "index/tag_table.h"
#include "index/told_ids.h"
#include "varve/result.h"

namespace varve::index {

/// Finds every added chunk, except after damage.
///
/// New entries go to a table. A full table becomes a run, and so does the table at each save. A
/// lookup searches the table and then the runs, newest first; the filters of the runs are in
/// memory. A lookup confirms a chunk by the table of the chunk's container, and caches the
/// neighbouring chunks.
///
/// Damage: a run with a damaged block, or with an entry that names a chunk of different content, is
/// left out and logged. missing() then returns the chunks of the run.
class ExactPoolIndex final : public PoolIndex {
 public:
  static constexpr std::size_t kMemoryBytesDefault = std::size_t{64} << 20;

  /// Opens the index in `folder`, or an empty index if there is none; never fails. Several threads
  /// call `stored`, without a lock of the index. `memory_bytes` is the budget for tables, filters
  /// and caches; the sets of chunk ids and a merge come on top (about 1 MiB).
  /// Lifetime: `stored` and the file system must outlive the index.
  [[nodiscard]] static std::unique_ptr<ExactPoolIndex> open(
      PoolIndexFolder folder, StoredFingerprints& stored,
      std::size_t memory_bytes = kMemoryBytesDefault);

  ExactPoolIndex(const ExactPoolIndex&) = delete;
  ExactPoolIndex& operator=(const ExactPoolIndex&) = delete;
  ~ExactPoolIndex() override = default;

  void lookup(StreamNumber stream, std::span<const Fingerprint> fingerprints,
              std::span<PoolHit> hits) override;
  void placed(StreamNumber stream, std::span<const PlacedChunk> chunks) override;
  void replace(StreamNumber stream, std::span<const PlacedChunk> chunks) override;
  void stored_in_series(StreamNumber stream, SeriesId series,
                        std::span<const Fingerprint> fingerprints) override;
  void forget(const base::IdRuns& ids) override;
  void close_stream(StreamNumber stream) override;
  using PoolIndex::save;
  [[nodiscard]] Result<void> save(const PoolChunks& chunks) override;
  [[nodiscard]] ChunkId saved_until() const override;
  [[nodiscard]] base::IdRuns covered() const override;
  void add_missing(const base::IdRuns& ids) override;
  [[nodiscard]] std::size_t size() const override;
  [[nodiscard]] std::size_t memory_bytes() const override;

 private:
  /// Runs, newest first.
  using RunList = std::vector<std::shared_ptr<FilteredRun>>;
  struct Lookup;

  ExactPoolIndex(PoolIndexFolder folder, StoredFingerprints& stored, std::size_t memory_bytes);

  [[nodiscard]] PoolHit find(StreamNumber stream, const Fingerprint& fingerprint);
  /// Takes the answer from the tables and the cache. Returns true if the answer is final.
  [[nodiscard]] bool find_in_memory(Lookup& lookup) const;
  [[nodiscard]] bool find_in_runs(Lookup& lookup);
  /// Reads the container of a chunk, checks the chunk's fingerprint, and caches the neighbouring
  /// chunks, except chunks that a run of `newer` may have.
  [[nodiscard]] RunSet::Verdict confirm(const Lookup& lookup, ChunkId id,
                                        std::span<const std::shared_ptr<FilteredRun>> newer);
  void leave_out(const std::shared_ptr<FilteredRun>& run, const Error& error);

  /// Adds chunks. `is_new`: the caller of save() may not know the chunks yet.
  void add(std::span<const PlacedChunk> chunks, bool is_new);
  /// Adds chunks of a container, except chunks with a newer copy of the same content.
  void add_unless_newer(std::span<const PlacedChunk> chunks);
  /// Locks `state_mutex_` when the table has room for `entries` more.
  [[nodiscard]] std::unique_lock<std::mutex> lock_with_room(std::size_t entries);
  [[nodiscard]] bool has_room(std::size_t entries) const {
    return table_.size() + entries <= entries_max_;
  }
  void put(const Tag& tag, ChunkId id);
  [[nodiscard]] bool is_forgotten(ChunkId id) const { return forgotten_.contains(id); }

  /// Writes the table as a run, unless it has room.
  void spill(std::size_t entries);
  /// Begins a new table: the present table will become a run.
  void freeze_table();
  /// Returns the chunks to keep from an id on: the chunks of the catalog, and newer chunks.
  [[nodiscard]] Result<base::IdRuns> kept_from(const PoolChunks& chunks, ChunkId from) const;
  /// Writes the former table as a run. Leaves out chunks outside `keep`; a null `keep` keeps all.
  [[nodiscard]] Result<void> write_frozen(const base::IdRuns* keep);
  /// Puts the entries of the former table into the present table, which may then be too large.
  void take_back_frozen();
  /// Makes lookups use the present runs.
  void publish();
  /// Drops the runs that lookups found damaged.
  void drop_damaged();

  StoredFingerprints& stored_;
  const std::size_t entries_max_;  // Maximum of entries in table_.
  const std::size_t filter_bytes_max_;

  // Held while runs are written and merged. Locked before state_mutex_.
  mutable std::mutex files_mutex_;
  PoolRuns files_;
  ChunkId saved_until_{};  // The runs miss no stored chunk below this id.

  // Held for work in memory only: no thread reads or writes a file, or calls stored_, meanwhile.
  mutable std::mutex state_mutex_;
  TagTable table_;                          // One entry a tag.
  ToldIds told_;                            // Chunks added to the table.
  std::shared_ptr<const TagTable> frozen_;  // The former table, while it becomes a run, or null.
  base::IdRuns frozen_told_;
  // Chunks added since the index was opened: a caller of save() may not know the chunks yet.
  ToldIds new_;
  base::IdRuns forgotten_;
  std::shared_ptr<const RunList> runs_;
  std::vector<std::shared_ptr<FilteredRun>> damaged_;  // Not yet dropped from files_.
  BesideCache beside_;
  std::uint64_t epoch_ = 0;  // Counts the clearings of beside_.
  std::map<StreamNumber, LookAhead> ahead_;
};

}  // namespace varve::index
