// SPDX-License-Identifier: Apache-2.0
// The indexes of the pool among which a repository chooses, and their names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "varve/result.h"

namespace varve {

/// How a repository finds chunks of the pool. The values are stored.
enum class PoolIndexKind : std::uint8_t {
  kExact = 0,      ///< Knows every chunk.
  kZeroChunk = 1,  ///< Keeps one of 2^N chunks in memory, and finds others by it (Zero-Chunk).
};

/// The index of a repository's pool.
struct PoolIndexChoice {
  static constexpr std::uint32_t kHookBitsMin = 6;
  static constexpr std::uint32_t kHookBitsMax = 10;

  PoolIndexKind kind = PoolIndexKind::kExact;
  std::uint32_t hook_bits = 0;  ///< N of kZeroChunk, 6 to 10; 0: by the number of chunks.
  bool operator==(const PoolIndexChoice&) const = default;
};

/// Returns the choice in words: `exact`, `zero-chunk`, or `zero-chunk:N`.
[[nodiscard]] std::string pool_index_text(const PoolIndexChoice& choice);
/// Returns the valid words, for messages and help texts.
[[nodiscard]] std::string pool_index_names();
/// Parses the words.
/// Errors: kInvalid for others; the message lists the valid ones.
[[nodiscard]] Result<PoolIndexChoice> parse_pool_index(std::string_view text);
/// Checks that this build of libvarve has the index.
/// Errors: kUnsupported.
[[nodiscard]] Result<void> check_pool_index(const PoolIndexChoice& choice);

}  // namespace varve
