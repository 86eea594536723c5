// SPDX-License-Identifier: Apache-2.0
#include "index/pool_indexes.h"

#include <algorithm>

#include "index/exact_pool_index.h"
#include "index/zero_chunk_index.h"
#include "index/zero_files.h"

namespace varve::index {

namespace {

constexpr std::uint64_t kHooksMax = std::uint64_t{1} << 20;

}  // namespace

std::uint32_t hook_bits_for(std::uint64_t chunks) {
  auto bits = PoolIndexChoice::kHookBitsMin;
  while (bits < PoolIndexChoice::kHookBitsMax && (chunks >> bits) > kHooksMax) ++bits;
  return bits;
}

Result<std::unique_ptr<PoolIndex>> open_pool_index(
    const PoolIndexChoice& choice, const PoolIndexFolder& folder, StoredFingerprints& stored,
    const std::function<Result<std::uint64_t>()>& count_chunks) {
  auto& files = *folder.runs.files;
  const auto& directory = folder.runs.directory;
  if (choice.kind == PoolIndexKind::kExact) {
    ZeroFiles::remove_all(files, directory);
    return std::unique_ptr<PoolIndex>(ExactPoolIndex::open(folder, stored));
  }
  PoolRuns::remove_all(folder);
  ZeroChunkOptions options;
  options.hook_bits = choice.hook_bits;
  if (options.hook_bits == 0) {
    if (const auto present = ZeroFiles::find_size(files, directory)) {
      const auto chunks = std::uint64_t{present->bins} << std::min(present->parameter, 32U);
      options.hook_bits = std::max(present->parameter, hook_bits_for(chunks));
    } else {
      VARVE_TRY_ASSIGN(const auto chunks, count_chunks());
      options.hook_bits = hook_bits_for(chunks);
    }
  }
  return std::unique_ptr<PoolIndex>(ZeroChunkIndex::open(folder, stored, options));
}

}  // namespace varve::index
