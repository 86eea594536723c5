// SPDX-License-Identifier: Apache-2.0
// The stream index of the pool: a cache in memory, shared by the open versions according to the
// locality of their streams (SLADE; Wu et al., TPDS'18), above the runs of the exact index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/id_runs.h"
#include "index/beside_cache.h"
#include "index/pool_index.h"
#include "index/pool_runs.h"
#include "index/stored_fingerprints.h"
#include "index/stream_metrics.h"
#include "index/tle_cache.h"

namespace varve::index {

struct StreamOptions {
  /// Memory budget. Three quarters are for the entries shared by the streams, 48 bytes each: 2^20
  /// with the default, the fingerprints of 8 GiB of chunks of 8 KiB. The rest is for samples, new
  /// entries of the runs, and neighbours of found chunks.
  std::size_t memory_bytes = std::size_t{64} << 20;
  std::uint64_t seed = TleOptions().seed;
  EvictionRule rule = TleOptions().rule;
  bool applies_threshold = true;  ///< For comparisons: false finds short runs of duplicates, too.
  const StreamMetrics* metrics = nullptr;  ///< May be null. Must outlive the index.
};

/// Finds recently stored or used chunks of streams, and their stored neighbours: from memory, and
/// confirmed by the table of the chunk's container. Misses all remaining chunks. A miss costs
/// space, never data.
///
/// All chunks also go to the sorted runs of an ExactPoolIndex. The runs are written, but never
/// searched. So a pass over the pool can find missed duplicates, and the files are ready for a
/// repository that chooses the exact index.
///
/// A lookup reports a run of duplicates shorter than the stream's threshold as unknown: the caller
/// stores the chunks of the run again, together. A run is a sequence of chunks with consecutive
/// ids, or of a repeated id. A run at the end of a batch may continue, so the run is kept.
/// Thread-safe.
class StreamIndex final : public PoolIndex {
 public:
  /// Opens the index in the folder, or an empty index; never fails. Reads the newest chunks, a
  /// quarter of the entries, from their containers to memory.
  /// Lifetime: `stored` and the file system must outlive the index.
  [[nodiscard]] static std::unique_ptr<StreamIndex> open(const PoolIndexFolder& folder,
                                                         StoredFingerprints& stored,
                                                         const StreamOptions& options = {});
  StreamIndex(const StreamIndex&) = delete;
  StreamIndex& operator=(const StreamIndex&) = delete;
  ~StreamIndex() override = default;

  void open_stream(StreamNumber stream, SeriesId series) override;
  void lookup(StreamNumber stream, std::span<const Fingerprint> fingerprints,
              std::span<PoolHit> hits) override;
  void placed(StreamNumber stream, std::span<const PlacedChunk> chunks) override;
  void replace(StreamNumber stream, std::span<const PlacedChunk> chunks) override;
  void stored_in_series(StreamNumber stream, SeriesId series,
                        std::span<const Fingerprint> fingerprints) override;
  void forget(const base::IdRuns& ids) override;
  void note_reads(SeriesId series, std::span<const std::uint64_t> runs) override;
  void close_stream(StreamNumber stream) override;
  using PoolIndex::save;
  [[nodiscard]] Result<void> save(const PoolChunks& chunks) override;
  [[nodiscard]] ChunkId saved_until() const override;
  [[nodiscard]] base::IdRuns covered() const override;
  void add_missing(const base::IdRuns& ids) override;
  [[nodiscard]] std::vector<PoolStream> streams() const override;
  /// Returns the number of entries of the runs: the runs have all chunks.
  [[nodiscard]] std::size_t size() const override;
  [[nodiscard]] std::size_t memory_bytes() const override;

 private:
  using Lock = std::unique_lock<std::mutex>;
  /// An open stream.
  struct Stream {
    StreamSlot slot = 0;
    LookAhead ahead;
    std::uint64_t run_length = 0;  // Length of the run of duplicates at the end of the last batch.
    ChunkId run_last;
  };
  /// The state of a stream kept for the series' next stream, beside the state in the cache.
  struct Slot {
    SeriesId series{};
    RunThreshold threshold;
  };

  StreamIndex(const PoolIndexFolder& folder, StoredFingerprints& stored,
              const StreamOptions& options);
  void fill();
  [[nodiscard]] Stream& stream_of(StreamNumber number);
  Stream& begin_stream(StreamNumber number, SeriesId series);
  [[nodiscard]] PoolHit find(StreamNumber number, const Fingerprint& fingerprint);
  /// Returns whether the chunk has the content, and caches the neighbouring chunks. Releases the
  /// lock meanwhile.
  [[nodiscard]] bool confirm(StreamNumber number, const Fingerprint& fingerprint, ChunkId id,
                             Lock& lock);
  void drop_short_runs(StreamNumber number, std::span<PoolHit> hits);
  void update_estimates();

  StoredFingerprints& stored_;
  const StreamOptions options_;
  const std::unique_ptr<PoolIndex> runs_;  // Only written and saved. Called without mutex_.

  mutable std::mutex mutex_;  // For work in memory only. Guards all below.
  TleCache cache_;
  std::unordered_map<StreamNumber, Stream> streams_;
  std::vector<Slot> slots_;  // By slot of cache_.
  BesideCache confirmed_;
  std::uint64_t epoch_ = 0;  // Counts the clearings of confirmed_.
  bool is_estimating_ = false;
  std::uint64_t evictions_told_ = 0;
};

}  // namespace varve::index
