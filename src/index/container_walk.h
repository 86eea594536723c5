// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/id_runs.h"
#include "index/pool_index.h"
#include "index/stored_fingerprints.h"

namespace varve::index {

/// Reads the tables of the containers of `ids`, and passes the chunks among `ids` to `visit`, all
/// chunks of a container at once. Skips unreadable containers.
template <typename Visit>
void for_each_container_of(StoredFingerprints& stored, const base::IdRuns& ids, Visit&& visit) {
  for (const auto& run : ids.runs()) {
    const std::uint64_t end = run.first.value + run.count;
    for (std::uint64_t at = run.first.value; at < end;) {
      std::uint64_t next = at + 1;
      std::vector<PlacedChunk> chunks;
      const bool read = stored.around(ChunkId{at}, [&](const Fingerprint& its, ChunkId id) {
        if (id.value < at || id.value >= end) return;
        next = std::max(next, id.value + 1);
        chunks.push_back({its, id});
      });
      at = next;
      if (read) visit(chunks);
    }
  }
}

}  // namespace varve::index
