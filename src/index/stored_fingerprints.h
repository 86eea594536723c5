// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "varve/types.h"

namespace varve::index {

/// Reads the fingerprints of stored chunks from their containers. An index confirms by the
/// fingerprint that a chunk has the content claimed by a run.
class StoredFingerprints {
 public:
  using Visit = std::function<void(const Fingerprint&, ChunkId)>;
  virtual ~StoredFingerprints() = default;
  /// Passes the consecutively stored chunks around `id` to `visit`, ascending, including `id`:
  /// usually all chunks of a container. Returns false if the chunks cannot be located or read. An
  /// implementation for NeighbourIndex need not be thread-safe; an implementation for
  /// ExactPoolIndex must be.
  [[nodiscard]] virtual bool around(ChunkId id, const Visit& visit) = 0;
};

}  // namespace varve::index
