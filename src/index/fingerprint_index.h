// SPDX-License-Identifier: Apache-2.0
// Which chunks are stored already: the question that deduplication asks.
#pragma once

#include <cstddef>
#include <optional>

#include "varve/types.h"

namespace varve::index {

/// Not thread-safe: the ingest pipeline asks from one thread at a time.
class FingerprintIndex {
 public:
  virtual ~FingerprintIndex() = default;
  /// The id of a stored chunk with this fingerprint, if the index knows one.
  [[nodiscard]] virtual std::optional<ChunkId> find(const Fingerprint& fingerprint) const = 0;
  /// The chunk is stored now. It must not be in the index.
  virtual void insert(const Fingerprint& fingerprint, ChunkId id) = 0;
  [[nodiscard]] virtual std::size_t size() const = 0;
  /// How many of the `count` chunks from `first` on the version being written may refer to,
  /// before the first that it may not: those of the neighbour, and its own. Thread-safe.
  [[nodiscard]] virtual std::uint32_t covers(ChunkId first, std::uint32_t count) const = 0;
};

}  // namespace varve::index
