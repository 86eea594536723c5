// SPDX-License-Identifier: Apache-2.0
// The index of the pool: fingerprints of the chunks shared by all series.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/id_runs.h"
#include "varve/pool_index.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::index {

/// Number of an open version as a user of the pool's index, unique among open versions.
enum class StreamNumber : std::uint32_t {};

/// The answer for one fingerprint. At most one of the members is set.
struct PoolHit {
  std::optional<ChunkId> id;          ///< A chunk in the pool; its content was confirmed.
  std::optional<SeriesId> elsewhere;  ///< A series with the content in its own store: a hint.
  bool operator==(const PoolHit&) const = default;
};

/// A chunk on disk and in the catalog, so that every stream may refer to the chunk.
struct PlacedChunk {
  Fingerprint fingerprint{};
  ChunkId id;
};

/// The chunks of the pool in the catalog, for PoolIndex::save().
struct PoolChunks {
  /// Returns the chunks from an id on. Chunks added meanwhile may be missing; placed() reports
  /// them.
  std::function<Result<base::IdRuns>(ChunkId from)> from;
  /// All chunks of births below `complete_below` were in the catalog before the first call of
  /// `from`.
  VersionNumber complete_below{};
};

/// Finds chunks of the pool by fingerprint. Thread-safe: several open versions, each a *stream*,
/// use one index.
///
/// The index is derived data. Losing or damaging any part costs deduplication only, because each
/// hit is confirmed by the table of the chunk's container.
class PoolIndex {
 public:
  virtual ~PoolIndex() = default;

  /// Sets the series of a stream, before the stream's first lookup. An index may use estimates from
  /// earlier streams of the series.
  virtual void open_stream(StreamNumber /*stream*/, SeriesId /*series*/) {}
  /// Looks up a batch. Sets hits[i] to the answer for fingerprints[i]. An id was added by placed(),
  /// replace() or add_missing(), and its chunk is stored now. A series is the last series from
  /// stored_in_series() for the content, or an older one. Both spans have the same size. A chunk
  /// freed by a concurrent deletion may still be returned.
  virtual void lookup(StreamNumber stream, std::span<const Fingerprint> fingerprints,
                      std::span<PoolHit> hits) = 0;

  /// Adds chunks. All ids must belong to the pool.
  virtual void placed(StreamNumber stream, std::span<const PlacedChunk> chunks) = 0;
  /// Adds chunks whose content was stored again. lookup() returns the new ids from now on. Once new
  /// entries have left the memory, lookup() may return an older copy that is still stored. The
  /// older copy is correct, but the decision will be repeated.
  virtual void replace(StreamNumber stream, std::span<const PlacedChunk> chunks) = 0;
  /// Adds *markers*: the series stored the contents in its own store. A marker is a hint that may
  /// be out of date. A marker never replaces an id of the pool.
  virtual void stored_in_series(StreamNumber stream, SeriesId series,
                                std::span<const Fingerprint> fingerprints) = 0;
  /// Removes chunks freed by a deletion. Call forget() after the deletion's commit.
  virtual void forget(const base::IdRuns& ids) = 0;
  /// Reports the reads of a reader of the series: runs of consecutively stored chunks, by number of
  /// chunks.
  virtual void note_reads(SeriesId /*series*/, std::span<const std::uint64_t> /*runs*/) {}
  /// Frees the data kept for a stream.
  virtual void close_stream(StreamNumber stream) = 0;

  /// Saves the index durably. Asks for the chunks since the last save, and for the chunks of merged
  /// runs. Chunks missing from the answers may be dropped.
  /// Errors: the errors of `chunks` and of writing files. The index stays usable, and a later call
  /// saves everything.
  [[nodiscard]] virtual Result<void> save(const PoolChunks& chunks) = 0;
  /// Saves as save(chunks), with `live` as all chunks of the pool in the catalog.
  [[nodiscard]] Result<void> save(const base::IdRuns& live) {
    return save(PoolChunks{[&live](ChunkId) { return Result<base::IdRuns>(live); }, {}});
  }
  /// Returns the first id that the index may miss, as of the last save.
  [[nodiscard]] virtual ChunkId saved_until() const = 0;
  /// Returns the chunks added to the index, including chunks without an entry.
  [[nodiscard]] virtual base::IdRuns covered() const = 0;
  /// Returns the chunks of `live` that were never added to the index, or lost to damage. No stored
  /// chunk below saved_until() is missing.
  [[nodiscard]] base::IdRuns missing(const base::IdRuns& live) const {
    return live.subtract(covered());
  }
  /// Adds chunks from the tables of their containers. Skips unreadable chunks. May be called with
  /// parts of missing(), and during lookups.
  virtual void add_missing(const base::IdRuns& ids) = 0;

  /// Returns the state of the streams; none if the index does not distinguish streams.
  [[nodiscard]] virtual std::vector<PoolStream> streams() const { return {}; }
  /// Returns the number of entries. Counts a repeatedly added content several times, and counts the
  /// entries of freed chunks, until a merge drops them.
  [[nodiscard]] virtual std::size_t size() const = 0;
  /// Returns the current memory of the index, in bytes.
  [[nodiscard]] virtual std::size_t memory_bytes() const = 0;
};

}  // namespace varve::index
