// SPDX-License-Identifier: Apache-2.0
// A file of aliases of the pool: chunks whose content is stored under another id (FORMAT.md §13).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "format/birth_mark.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::format {

/// A run of consecutive chunks of the pool with the contents of other consecutive chunks.
struct AliasRun {
  ChunkId first;
  std::uint32_t count = 0;
  ChunkId target;  ///< Chunk with the content of `first`.
  bool operator==(const AliasRun&) const = default;
};

/// Checks that all ids are ids of the pool, that both runs stay inside one birth, and that no chunk
/// is its own target.
[[nodiscard]] bool is_alias_run(const AliasRun& run);

/// Returns the part of a fingerprint by which a reader recognises an alias's content.
[[nodiscard]] std::uint64_t alias_tag(const Fingerprint& fingerprint);

/// A run of aliases with the tags of the chunks.
struct TaggedAliases {
  AliasRun run;
  std::vector<std::uint64_t> tags;  ///< Tag of each chunk of the run.
  bool operator==(const TaggedAliases&) const = default;
};

struct AliasFileHeader {
  std::uint64_t blocks = 0;
  std::uint64_t chunks = 0;  ///< Number of aliases in all blocks.
  /// Bytes of the part with the births, behind the blocks; 0 in format 1, without births.
  std::uint64_t births_bytes = 0;
  bool operator==(const AliasFileHeader&) const = default;
};

inline constexpr std::size_t kAliasHeaderBytes = 40;
/// Bytes of a block before its content.
inline constexpr std::size_t kAliasBlockHeaderBytes = 16;
/// Maximum size of a block's content, in bytes.
inline constexpr std::size_t kAliasBlockBytesMax = 65536;
/// Maximum number of aliases of a run inside a block.
inline constexpr std::uint32_t kAliasesInBlockMax = 8000;

/// Encodes a header: of format 2 if the file has births, otherwise of format 1.
[[nodiscard]] std::string encode_alias_header(const AliasFileHeader& header);
/// Errors: kCorrupt; kUnsupported for another format.
[[nodiscard]] Result<AliasFileHeader> decode_alias_header(std::span<const std::byte> bytes);

/// Collects the runs of a block.
class AliasBlockEncoder {
 public:
  /// Adds a run of at most kAliasesInBlockMax chunks. Returns false if the block has no room for
  /// the run: the caller then takes the block and adds the run to the next block.
  [[nodiscard]] bool add(const TaggedAliases& aliases);
  [[nodiscard]] bool empty() const { return runs_ == 0; }
  /// Returns the block with its header, and begins a new block.
  [[nodiscard]] std::string take();

 private:
  std::string content_;
  std::uint32_t runs_ = 0;
  std::uint64_t end_ = 0;  // End of the last run.
};

/// Maximum size of the part with the births, in bytes.
inline constexpr std::size_t kAliasBirthsBytesMax = std::size_t{64} << 20;
/// Encode and decode the part with the births of the aliases and of the aliases' targets.
/// Errors: kCorrupt.
[[nodiscard]] std::string encode_alias_births(const Births& births);
[[nodiscard]] Result<Births> decode_alias_births(std::span<const std::byte> bytes);

/// Returns the size of a block's content from the block's header; 0 for an invalid header.
[[nodiscard]] std::size_t alias_block_bytes(std::span<const std::byte> header);
/// Decodes a block with its header. The runs ascend. Errors: kCorrupt.
[[nodiscard]] Result<std::vector<TaggedAliases>> decode_alias_block(
    std::span<const std::byte> block);

}  // namespace varve::format
