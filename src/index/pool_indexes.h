// SPDX-License-Identifier: Apache-2.0
// Opens the index of the pool that a repository has chosen.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "index/pool_index.h"
#include "index/pool_runs.h"
#include "index/stored_fingerprints.h"
#include "index/stream_metrics.h"
#include "varve/pool_index.h"
#include "varve/result.h"

namespace varve::index {

/// Returns N for a Zero-Chunk index of so many chunks: 6, or more so that at most 2^20 hooks are in
/// memory, but at most 10.
[[nodiscard]] std::uint32_t hook_bits_for(std::uint64_t chunks);

/// Opens the chosen index, or an empty one if the folder has none of this kind, and removes the
/// files of the others. The exact and the stream index have the same files. A Zero-Chunk index
/// whose N is chosen by the number of chunks begins empty again, with a larger N, once it has
/// outgrown the present one. `count_chunks` returns the number of chunks in the pool; it is only
/// called for a new index. Errors: those of `count_chunks`. `metrics` may be null. Lifetime: it,
/// `stored` and the file system must outlive the index.
[[nodiscard]] Result<std::unique_ptr<PoolIndex>> open_pool_index(
    const PoolIndexChoice& choice, const PoolIndexFolder& folder, StoredFingerprints& stored,
    const std::function<Result<std::uint64_t>()>& count_chunks,
    const StreamMetrics* metrics = nullptr);

}  // namespace varve::index
