// SPDX-License-Identifier: Apache-2.0
// Chunkers decide where a file is cut into chunks. To add a chunker, implement Chunker and add a
// row to the table in chunker.cc; names, help, checks and the contract suite follow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "crypto/key_ring.h"
#include "varve/options.h"
#include "varve/result.h"

namespace varve::ingest {

/// Lengths of chunks, in bytes.
struct ChunkSizes {
  std::uint32_t min = 2048;
  std::uint32_t avg = 8192;
  std::uint32_t max = 65536;
};

/// Returns the sizes chosen by a repository's parameters.
[[nodiscard]] constexpr ChunkSizes chunk_sizes_of(const RepositoryParameters& parameters) {
  return {parameters.chunk_bytes_min, parameters.chunk_bytes_avg, parameters.chunk_bytes_max};
}

/// Finds content-defined boundaries. Stateless and thread-safe: the length of the next chunk
/// is a pure function of the bytes after the last boundary.
class Chunker {
 public:
  virtual ~Chunker() = default;

  /// Returns the length of the chunk starting at data[0], in (0, sizes().max]. `data` must hold at
  /// least sizes().max bytes, or the rest of the file.
  [[nodiscard]] virtual std::size_t next(std::span<const std::byte> data) const = 0;

  [[nodiscard]] virtual ChunkSizes sizes() const = 0;
  /// Returns the id for the superblock.
  [[nodiscard]] virtual std::string_view id() const = 0;
};

/// The sizes supported by a chunker. The average must be a power of two between the minimum and the
/// maximum.
struct ChunkSizeRule {
  std::uint32_t step = 64;  ///< The minimum and the maximum are multiples of the step.
  std::uint32_t min_least = 64;
  std::uint32_t avg_least = 1U << 10;
  std::uint32_t avg_most = 16U << 10;
  std::uint32_t max_most = 128U << 10;  ///< A chunk fits in a frame.
};

/// One row of the table of chunkers. Superblocks keep the id forever, so the boundaries of an id
/// never change.
struct ChunkerKind {
  std::string_view id;
  std::string_view help;
  ChunkSizeRule sizes;
  /// Id of the form whose boundaries depend on the keys of an encrypted repository. A keyed form
  /// has its own id here.
  std::string_view keyed_id;
  /// Creates the chunker. The sizes must obey the rule. `keys` is only null without a key.
  Result<std::unique_ptr<Chunker>> (*make)(ChunkSizes sizes, const crypto::KeyRing* keys) = nullptr;

  [[nodiscard]] constexpr bool is_keyed() const { return id == keyed_id; }
};

/// Returns the table.
[[nodiscard]] std::span<const ChunkerKind> chunker_kinds();

/// Returns the row of an id.
/// Errors: kUnsupported for an unknown id; the message lists the known ids.
[[nodiscard]] Result<const ChunkerKind*> find_chunker(std::string_view id);

/// Checks sizes against a rule.
/// Errors: kInvalid, with the allowed sizes.
[[nodiscard]] Result<void> check_chunk_sizes(const ChunkSizeRule& rule, ChunkSizes sizes);

/// Checks that a chunker can be made with or without keys.
/// Errors: kInvalid for a keyed chunker without keys.
[[nodiscard]] Result<void> check_chunker_key(const ChunkerKind& kind, bool has_keys);

/// Returns the sizes allowed for a repository with the chunker. The lower bounds are higher than
/// the chunker's bounds, because each chunk costs memory and records.
[[nodiscard]] ChunkSizeRule repository_sizes(const ChunkerKind& kind);

/// Creates a chunker. `keys` are the repository's keys, null for a plain repository.
/// Errors: those of find_chunker(), and of check_chunk_sizes() with the chunker's own rule;
/// kInvalid for a keyed chunker without keys; kIo without memory.
[[nodiscard]] Result<std::unique_ptr<Chunker>> make_chunker(std::string_view id, ChunkSizes sizes,
                                                            const crypto::KeyRing* keys = nullptr);

}  // namespace varve::ingest
