// SPDX-License-Identifier: Apache-2.0
// The index from fingerprints to stored chunks, used by deduplication.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "varve/types.h"

namespace varve::index {

/// Finds stored chunks by fingerprint. Not thread-safe unless a function says so: the ingest
/// pipeline calls from one thread at a time.
class FingerprintIndex {
 public:
  virtual ~FingerprintIndex() = default;

  /// Looks up a batch, so that an index on disk can read ahead. Sets ids[i] to the id of a stored
  /// chunk with fingerprints[i], or to nullopt for an unknown fingerprint. Both spans have the same
  /// size.
  virtual void find(std::span<const Fingerprint> fingerprints,
                    std::span<std::optional<ChunkId>> ids) const = 0;

  /// Looks up one fingerprint.
  [[nodiscard]] std::optional<ChunkId> find_one(const Fingerprint& fingerprint) const {
    std::optional<ChunkId> id;
    find({&fingerprint, 1}, {&id, 1});
    return id;
  }

  /// Sets known[i] to whether a different series has stored a chunk with fingerprints[i] in a place
  /// to which this series cannot refer. A hint: the chunk may be gone. The last call of find() must
  /// have had the same fingerprints. Both spans have the same size.
  virtual void find_elsewhere(std::span<const Fingerprint> /*fingerprints*/,
                              std::span<bool> known) const {
    for (bool& one : known) one = false;
  }

  /// Adds a stored chunk whose fingerprint find() does not know.
  virtual void insert(const Fingerprint& fingerprint, ChunkId id) = 0;

  /// Records that a chunk was stored again: find() returns the new id from now on. Inserts the
  /// chunk if find() does not know the fingerprint any more. A full index may keep the old id. The
  /// old id is correct, because the old copy stays stored, but the decision will be repeated.
  virtual void replace(const Fingerprint& fingerprint, ChunkId id) = 0;

  /// Returns the number of entries.
  [[nodiscard]] virtual std::size_t size() const = 0;

  /// Returns the length of the prefix of `count` chunks from `first` on to which the version being
  /// written may refer. The version may refer to chunks of the neighbour, and to its own chunks.
  /// Thread-safe.
  [[nodiscard]] virtual std::uint32_t covers(ChunkId first, std::uint32_t count) const = 0;
};

}  // namespace varve::index
