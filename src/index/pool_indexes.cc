// SPDX-License-Identifier: Apache-2.0
#include "index/pool_indexes.h"

#include <algorithm>
#include <utility>

#include "index/exact_pool_index.h"
#include "index/stream_index.h"
#include "index/zero_chunk_index.h"
#include "index/zero_files.h"

namespace varve::index {

namespace {

constexpr std::uint64_t kHooksMax = std::uint64_t{1} << 20;

bool is_valid(std::uint32_t hook_bits) {
  return check_pool_index({PoolIndexKind::kZeroChunk, hook_bits}).has_value() && hook_bits != 0;
}

}  // namespace

std::uint32_t hook_bits_for(std::uint64_t chunks) {
  auto bits = PoolIndexChoice::kHookBitsMin;
  while (bits < PoolIndexChoice::kHookBitsMax && (chunks >> bits) > kHooksMax) ++bits;
  return bits;
}

Result<std::unique_ptr<PoolIndex>> open_pool_index(
    const PoolIndexChoice& choice, const PoolIndexFolder& folder, StoredFingerprints& stored,
    const std::function<Result<std::uint64_t>()>& count_chunks, const StreamMetrics* metrics) {
  auto& files = *folder.runs.files;
  const auto& directory = folder.runs.directory;
  if (choice.kind != PoolIndexKind::kZeroChunk) {
    ZeroFiles::remove_all(files, directory);
    if (choice.kind == PoolIndexKind::kStream) {
      StreamOptions options;
      options.metrics = metrics;
      return std::unique_ptr<PoolIndex>(StreamIndex::open(folder, stored, options));
    }
    return std::unique_ptr<PoolIndex>(ExactPoolIndex::open(folder, stored));
  }
  PoolRuns::remove_all(folder);
  ZeroChunkOptions options;
  options.hook_bits = choice.hook_bits;
  if (options.hook_bits == 0) {
    auto present = ZeroFiles::open_present(files, directory);
    if (present && is_valid(present->parameter())) {
      const auto bits = present->parameter();
      options.hook_bits = std::max(bits, hook_bits_for(present->bins().size() << bits));
      if (options.hook_bits == bits) {
        return std::unique_ptr<PoolIndex>(ZeroChunkIndex::open(std::move(present), stored));
      }
    } else {
      VARVE_TRY_ASSIGN(const auto chunks, count_chunks());
      options.hook_bits = hook_bits_for(chunks);
    }
  }
  return std::unique_ptr<PoolIndex>(ZeroChunkIndex::open(folder, stored, options));
}

}  // namespace varve::index
