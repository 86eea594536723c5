// SPDX-License-Identifier: Apache-2.0
// The Zero-Chunk index of the pool: keeps a fraction 1 / 2^N of the fingerprints in memory, and
// finds most chunks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/id_runs.h"
#include "index/beside_cache.h"
#include "index/pool_index.h"
#include "index/pool_runs.h"
#include "index/stored_fingerprints.h"
#include "index/told_ids.h"
#include "index/zero_bin.h"
#include "index/zero_files.h"

namespace varve::index {

/// Memory use and search parameters of the index.
struct ZeroChunkOptions {
  std::size_t memory_bytes = std::size_t{32} << 20;  ///< Budget for bins and caches, without hooks.
  /// N: a chunk is a *hook* if the low N bits of its fingerprint are zero. 6 to 10; values outside
  /// are clamped.
  std::uint32_t hook_bits = 8;
  std::size_t resident_max = 64;  ///< Maximum number of bins in memory.
  BinRules rules;                 ///< `heat_step` 0: 2^N - 1.
};

/// Numbers of lookups, hits and transfers since an index was opened.
struct ZeroChunkCounts {
  std::uint64_t lookups = 0;
  std::uint64_t hits = 0;       ///< Chunks of the pool found.
  std::uint64_t hook_hits = 0;  ///< Lookups of known hooks.
  std::uint64_t bins_read = 0;
  std::uint64_t bins_written = 0;
  std::uint64_t bytes_read = 0;     ///< Bytes from the files of the index.
  std::uint64_t bytes_written = 0;  ///< Bytes to the files of the index.
};

/// Finds a chunk in the bin of the hook before the chunk in a stream, or in a different bin in
/// memory (Zero-Chunk). Misses all remaining chunks: a miss costs space, never data.
///
/// A known hook makes its bin the stream's present bin, a new hook starts a bin. A new chunk joins
/// the bin that was present at the chunk's lookup. Confirms a chunk by the table of the chunk's
/// container, as ExactPoolIndex does. Thread-safe; reads and writes bins under the lock.
class ZeroChunkIndex final : public PoolIndex {
 public:
  /// Opens the index in the folder; never fails. Opens an empty index if there is none, or if the
  /// folder has an index with a different N. Several threads call `stored`, without a lock of the
  /// index.
  /// Lifetime: `stored` and the file system must outlive the index.
  [[nodiscard]] static std::unique_ptr<ZeroChunkIndex> open(const PoolIndexFolder& folder,
                                                            StoredFingerprints& stored,
                                                            const ZeroChunkOptions& options = {});
  /// Opens the index of open files, with the N of the files. Sets `options.hook_bits`.
  [[nodiscard]] static std::unique_ptr<ZeroChunkIndex> open(std::unique_ptr<ZeroFiles> files,
                                                            StoredFingerprints& stored,
                                                            ZeroChunkOptions options = {});
  ZeroChunkIndex(const ZeroChunkIndex&) = delete;
  ZeroChunkIndex& operator=(const ZeroChunkIndex&) = delete;
  ~ZeroChunkIndex() override = default;

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
  /// Returns the number of entries in the bins in memory, plus an estimate for the remaining bins.
  [[nodiscard]] std::size_t size() const override;
  [[nodiscard]] std::size_t memory_bytes() const override;
  /// Returns the part of memory_bytes() that grows with the number of hooks.
  [[nodiscard]] std::size_t table_bytes() const;
  [[nodiscard]] ZeroChunkCounts counts() const;

 private:
  using Lock = std::unique_lock<std::mutex>;
  /// A bin in memory.
  struct Resident {
    BinNumber number = 0;
    ZeroBin bin;
    bool is_dirty = false;
  };
  struct Stream {
    // Bin 0 has the chunks before the first hook of a stream.
    BinNumber present = 0;  // Bin of the last hook looked up.
    BinNumber target = 0;   // Bin of the last hook stored.
    /// The present bins at the lookups of chunks that were not found, by a part of the tag.
    std::unordered_map<std::uint64_t, BinNumber> missed;
  };

  ZeroChunkIndex(std::unique_ptr<ZeroFiles> files, StoredFingerprints& stored,
                 const ZeroChunkOptions& options);
  [[nodiscard]] bool is_hook(const Tag& tag) const;

  [[nodiscard]] PoolHit find(StreamNumber stream, const Fingerprint& fingerprint);
  /// Returns the entry with the tag from a bin in memory, and makes the bin the last to be evicted.
  [[nodiscard]] std::optional<ChunkId> find_resident(const Tag& tag, BinNumber first);
  /// Returns whether the chunk has the content. Releases the lock meanwhile.
  [[nodiscard]] bool confirm(const Fingerprint& fingerprint, ChunkId id, Lock& lock);
  void follow_hook(Stream& stream, const Tag& tag);
  void prefetch(const Fingerprint& fingerprint);

  void put(Stream& stream, const Entry& entry);
  [[nodiscard]] BinNumber bin_for(Stream& stream, const Tag& tag);
  /// Removes the entry with `tag` and `id` from the bins in memory.
  void erase_resident(const Tag& tag, ChunkId id);
  /// Returns the bin. Reads the bin unless in memory.
  Resident& load(BinNumber bin);
  void evict();
  [[nodiscard]] Result<void> write_back(Resident& resident);
  [[nodiscard]] std::size_t resident_bytes() const;
  [[nodiscard]] Result<void> compact(const base::IdRuns& keep);

  StoredFingerprints& stored_;
  const ZeroChunkOptions options_;
  const std::uint64_t hook_mask_;

  mutable std::mutex mutex_;  // Guards all below.
  std::unique_ptr<ZeroFiles> files_;
  std::list<Resident> resident_;  // Most recently used first.
  std::unordered_map<StreamNumber, Stream> streams_;
  BesideCache confirmed_;
  std::uint64_t epoch_ = 0;  // Counts the clearings of confirmed_.
  ToldIds told_;             // Chunks added since the last save.
  ToldIds new_;              // A caller of save() may not know these chunks yet.
  base::IdRuns forgotten_;
  ZeroChunkCounts counts_;
};

}  // namespace varve::index
