// SPDX-License-Identifier: Apache-2.0
// The indexes of the pool, from which a repository chooses, and their names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "varve/result.h"
#include "varve/types.h"

namespace varve {

/// How a repository finds chunks of the pool. The values are stored.
enum class PoolIndexKind : std::uint8_t {
  kExact = 0,  ///< Knows every chunk.
  /// Keeps one of 2^N chunks in memory as hooks, and finds chunks by their hooks (Zero-Chunk).
  kZeroChunk = 1,
  kStream = 2,  ///< Keeps chunks in memory by the locality of the streams (SLADE).
};

/// The index of a repository's pool.
struct PoolIndexChoice {
  static constexpr std::uint32_t kHookBitsMin = 6;
  static constexpr std::uint32_t kHookBitsMax = 10;

  PoolIndexKind kind = PoolIndexKind::kExact;
  std::uint32_t hook_bits = 0;  ///< N of kZeroChunk, 6 to 10; 0: by the number of chunks.
  bool operator==(const PoolIndexChoice&) const = default;
};

/// The state of a stream of the index `stream`. A series with an open version has a stream, and the
/// index keeps the stream for the next version.
struct PoolStream {
  SeriesId series{};          ///< 0 for the entries without a series.
  std::string name{};         ///< Name of the series; "" for 0.
  bool is_open = false;       ///< Whether a version is open.
  std::uint64_t entries = 0;  ///< In memory.
  /// Estimated temporal locality (TLI): duplicates among as many chunks as the memory has entries.
  std::uint64_t locality = 0;
  std::uint64_t lookups = 0;
  std::uint64_t hits = 0;
  std::uint32_t run_threshold = 1;  ///< Shorter runs of duplicates are stored again.
  bool is_admitted = true;          ///< Whether new chunks of the stream get entries.
  bool operator==(const PoolStream&) const = default;
};

/// Returns the choice in words: `exact`, `stream`, `zero-chunk`, or `zero-chunk:N`.
[[nodiscard]] std::string pool_index_text(const PoolIndexChoice& choice);
/// Returns the valid words, for messages and help texts.
[[nodiscard]] std::string pool_index_names();
/// Parses the words.
/// Errors: kInvalid for unknown words; the message lists the valid words.
[[nodiscard]] Result<PoolIndexChoice> parse_pool_index(std::string_view text);
/// Checks that libvarve was built with the index.
/// Errors: kUnsupported.
[[nodiscard]] Result<void> check_pool_index(const PoolIndexChoice& choice);

}  // namespace varve
