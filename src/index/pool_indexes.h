// SPDX-License-Identifier: Apache-2.0
// Opens the index of the pool chosen for a repository.
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

/// Returns N for a Zero-Chunk index of `chunks` chunks: 6, or more so that at most 2^20 hooks are
/// in memory, but at most 10.
[[nodiscard]] std::uint32_t hook_bits_for(std::uint64_t chunks);

/// Opens the chosen index, or an empty index if the folder has none of this kind. Removes the files
/// of all other kinds. The exact and the stream index share their files. A Zero-Chunk index
/// with N chosen by the number of chunks begins empty again, with a larger N, after outgrowing the
/// present N. `count_chunks` returns the number of chunks in the pool; only called for a new index.
/// `metrics` may be null.
/// Errors: the errors of `count_chunks`.
/// Lifetime: `metrics`, `stored` and the file system must outlive the index.
[[nodiscard]] Result<std::unique_ptr<PoolIndex>> open_pool_index(
    const PoolIndexChoice& choice, const PoolIndexFolder& folder, StoredFingerprints& stored,
    const std::function<Result<std::uint64_t>()>& count_chunks,
    const StreamMetrics* metrics = nullptr);

}  // namespace varve::index
