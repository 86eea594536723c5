// SPDX-License-Identifier: Apache-2.0
// The index of the pool: fingerprints of the chunks that all series share.
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

/// Number of an open version as a user of the pool's index, unique among those that are open.
enum class StreamNumber : std::uint32_t {};

/// The answer about one fingerprint. At most one of the two is set.
struct PoolHit {
  std::optional<ChunkId> id;          ///< A chunk in the pool; its content was confirmed.
  std::optional<SeriesId> elsewhere;  ///< A series that has the content in its own store: a hint.
  bool operator==(const PoolHit&) const = default;
};

/// A chunk that is on disk and in the catalog, so that every stream may refer to it.
struct PlacedChunk {
  Fingerprint fingerprint{};
  ChunkId id;
};

/// The chunks of the pool in the catalog, for PoolIndex::save().
struct PoolChunks {
  /// Returns the chunks from an id on. They may have become more since, as placed() tells.
  std::function<Result<base::IdRuns>(ChunkId from)> from;
  /// All chunks of births below this one were in the catalog before the first call of `from`.
  VersionNumber complete_below{};
};

/// Finds chunks of the pool by fingerprint. Thread-safe: several open versions, each a *stream*,
/// use one index.
///
/// The index is derived data. Losing or damaging any part of it costs deduplication only, because
/// each hit is confirmed by the table of the chunk's container.
class PoolIndex {
 public:
  virtual ~PoolIndex() = default;

  /// Tells the series of a stream, before its first lookup. An index may use what it learnt from
  /// earlier streams of the series.
  virtual void open_stream(StreamNumber /*stream*/, SeriesId /*series*/) {}
  /// Looks up a batch. Sets hits[i] to the answer about fingerprints[i]. An id is one that was told
  /// by placed(), replace() or add_missing(), of a chunk that is stored now. A series is the one
  /// named last by stored_in_series(), or an older one. Both spans have the same size. A chunk that
  /// a deletion frees meanwhile may still be returned.
  virtual void lookup(StreamNumber stream, std::span<const Fingerprint> fingerprints,
                      std::span<PoolHit> hits) = 0;

  /// Adds chunks. All ids must be the pool's.
  virtual void placed(StreamNumber stream, std::span<const PlacedChunk> chunks) = 0;
  /// Adds chunks whose content was stored again. lookup() returns their ids from now on. Once new
  /// entries have left the memory, it may return an older copy that is still stored. That is
  /// correct, but repeats the decision.
  virtual void replace(StreamNumber stream, std::span<const PlacedChunk> chunks) = 0;
  /// Adds *markers*: the series stored these contents in its own store. A marker is a hint that may
  /// be out of date. It never replaces an id of the pool.
  virtual void stored_in_series(StreamNumber stream, SeriesId series,
                                std::span<const Fingerprint> fingerprints) = 0;
  /// Removes chunks that a deletion freed. Call after the deletion's commit.
  virtual void forget(const base::IdRuns& ids) = 0;
  /// Tells what a reader of the series reads: runs of chunks that are stored one after the other,
  /// by the number of chunks.
  virtual void note_reads(SeriesId /*series*/, std::span<const std::uint64_t> /*runs*/) {}
  /// Frees what the index keeps for a stream.
  virtual void close_stream(StreamNumber stream) = 0;

  /// Saves the index durably. Asks for the chunks since the last save, and for those of runs that
  /// it merges. It may drop others from there on.
  /// Errors: those of `chunks` and of writing files. The index stays usable, and a later call saves
  /// everything.
  [[nodiscard]] virtual Result<void> save(const PoolChunks& chunks) = 0;
  /// Does the same if `live` are all chunks of the pool in the catalog.
  [[nodiscard]] Result<void> save(const base::IdRuns& live) {
    return save(PoolChunks{[&live](ChunkId) { return Result<base::IdRuns>(live); }, {}});
  }
  /// Returns the first id that the index may miss, as the last save noted it.
  [[nodiscard]] virtual ChunkId saved_until() const = 0;
  /// Returns the chunks that the index was told about, those without an entry included.
  [[nodiscard]] virtual base::IdRuns covered() const = 0;
  /// Returns the chunks of `live` that the index was never told about, or lost to damage. It has
  /// all chunks below saved_until() that are stored.
  [[nodiscard]] base::IdRuns missing(const base::IdRuns& live) const {
    return live.subtract(covered());
  }
  /// Adds chunks from the tables of their containers. Skips those that cannot be read. May be
  /// called with parts of missing(), and during lookups.
  virtual void add_missing(const base::IdRuns& ids) = 0;

  /// Returns the state of the streams; none if the index does not tell them apart.
  [[nodiscard]] virtual std::vector<PoolStream> streams() const { return {}; }
  /// Returns the number of entries. Counts a content twice that was told twice, and the entries of
  /// freed chunks, until a merge drops them.
  [[nodiscard]] virtual std::size_t size() const = 0;
  /// Returns the memory that the index uses now, in bytes.
  [[nodiscard]] virtual std::size_t memory_bytes() const = 0;
};

}  // namespace varve::index
