// SPDX-License-Identifier: Apache-2.0
// The header and the blocks of a sealed file. Format: docs/FORMAT.md §14.4.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "crypto/sealed_file.h"

namespace varve::crypto {

inline constexpr std::size_t kSealedHeaderBytes = 64;
/// Bytes of a block on disk before its sealed text.
inline constexpr std::size_t kSealedTextAt = 40;

using SealedHeader = std::array<std::byte, kSealedHeaderBytes>;

/// The places of the blocks of a file. Each block has a slot; the last slot may be shorter.
struct SealedShape {
  std::uint32_t block_bytes = 0;  ///< Text of a full block.

  [[nodiscard]] std::size_t slot_bytes() const { return kSealedTextAt + block_bytes; }
  [[nodiscard]] std::uint64_t slot_at(std::uint64_t block) const {
    return kSealedHeaderBytes + block * slot_bytes();
  }
  /// Returns the bytes of text in a file of `file_bytes` bytes.
  [[nodiscard]] std::uint64_t text_bytes(std::uint64_t file_bytes) const;
  /// Returns the number of blocks that one request reads or writes.
  [[nodiscard]] std::size_t slots_at_once() const;
};

[[nodiscard]] SealedHeader encode_sealed_header(std::uint32_t block_bytes, const Salt& salt);
/// Decodes a header. Errors: kCorrupt; kUnsupported for a newer format.
[[nodiscard]] Result<std::pair<SealedShape, Salt>> decode_sealed_header(
    std::span<const std::byte> header);

/// Returns the bytes of a block in `slot`, which may be cut at the end of a file. Returns nullopt
/// if the length or the checksum is wrong.
[[nodiscard]] std::optional<std::span<const std::byte>> sound_block(std::span<const std::byte> slot,
                                                                    std::uint64_t block);

/// Seals and opens the blocks of one file. Immutable and thread-safe.
class BlockCipher {
 public:
  BlockCipher(HedgedAead aead, const SealedPlace& place, SealedShape shape)
      : aead_(std::move(aead)), place_(place), shape_(shape) {}

  [[nodiscard]] const SealedShape& shape() const { return shape_; }
  /// Seals the text in `slot` behind kSealedTextAt, in place. `seed` is fresh random bytes.
  void seal(std::uint64_t block, const NonceSeed& seed, std::span<std::byte> slot) const;
  /// Opens a sound block to `out`, which has the length of the block's text. Returns false, and
  /// fills `out` with zeros, if the block is not authentic.
  [[nodiscard]] bool open(std::uint64_t block, std::span<const std::byte> slot,
                          std::span<std::byte> out) const;

 private:
  [[nodiscard]] std::array<std::byte, 32> associated(std::uint64_t block, std::size_t length) const;

  const HedgedAead aead_;
  const SealedPlace place_;
  const SealedShape shape_;
};

}  // namespace varve::crypto
