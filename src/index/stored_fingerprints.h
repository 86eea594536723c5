// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "varve/types.h"

namespace varve::index {

/// Reads the fingerprints of stored chunks from their containers. An index asks it to confirm that
/// a chunk has the content that a run says.
class StoredFingerprints {
 public:
  using Visit = std::function<void(const Fingerprint&, ChunkId)>;
  virtual ~StoredFingerprints() = default;
  /// Passes on the chunks that are stored one after the other around `id`, ascending, with `id`
  /// among them: usually those of a container. Returns false if they cannot be located or read.
  /// An implementation for NeighbourIndex need not be thread-safe; one for ExactPoolIndex must be.
  [[nodiscard]] virtual bool around(ChunkId id, const Visit& visit) = 0;
};

}  // namespace varve::index
