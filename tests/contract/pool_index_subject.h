// SPDX-License-Identifier: Apache-2.0
// The implementations of PoolIndex that the contract holds for.
#pragma once

#include <array>
#include <memory>

#include "index/exact_pool_index.h"
#include "index/stream_index.h"
#include "index/zero_chunk_index.h"
#include "support/pool_containers.h"

namespace varve::index {

struct PoolIndexSubject {
  const char* name;
  bool is_lossy;  ///< It may miss what it was told.
  std::unique_ptr<PoolIndex> (*open)(PoolIndexFolder folder, StoredFingerprints& stored,
                                     std::size_t memory_bytes);
};

inline constexpr std::array kPoolIndexSubjects{
    PoolIndexSubject{"exact", false,
                     [](PoolIndexFolder folder, StoredFingerprints& stored,
                        std::size_t memory_bytes) -> std::unique_ptr<PoolIndex> {
                       return ExactPoolIndex::open(std::move(folder), stored, memory_bytes);
                     }},
    PoolIndexSubject{"zero_chunk", true,
                     [](PoolIndexFolder folder, StoredFingerprints& stored,
                        std::size_t memory_bytes) -> std::unique_ptr<PoolIndex> {
                       ZeroChunkOptions options;
                       options.memory_bytes = memory_bytes;
                       return ZeroChunkIndex::open(folder, stored, options);
                     }},
    PoolIndexSubject{"stream", true,
                     [](PoolIndexFolder folder, StoredFingerprints& stored,
                        std::size_t memory_bytes) -> std::unique_ptr<PoolIndex> {
                       StreamOptions options;
                       options.memory_bytes = memory_bytes;
                       return StreamIndex::open(folder, stored, options);
                     }},
};

}  // namespace varve::index
