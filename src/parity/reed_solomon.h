// SPDX-License-Identifier: Apache-2.0
// A systematic Reed-Solomon code over GF(2^8), by ISA-L. Any `parity` lost blocks of a codeword
// come back (the parity rows are a Cauchy matrix: each of its square parts has an inverse).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace varve::parity {

/// Immutable, so thread-safe. Takes 32 bytes for each pair of a data and a parity block.
class ReedSolomon {
 public:
  /// Both at least 1, together at most 255.
  ReedSolomon(std::uint32_t data_blocks, std::uint32_t parity_blocks);

  /// Adds the data block at `position` to the codeword's parity blocks, which begin as zeros.
  /// All have `bytes` bytes.
  void add(std::uint32_t position, const std::byte* block, std::span<std::byte* const> parity,
           std::size_t bytes) const;

  /// Fills the blocks `lost` of `data`, from the others and from parity blocks; of these a null
  /// pointer is one that is lost, too. False, and nothing was changed, if more are lost than
  /// parity blocks are there.
  [[nodiscard]] bool restore(std::span<std::byte* const> data, std::span<const std::uint32_t> lost,
                             std::span<const std::byte* const> parity, std::size_t bytes) const;

 private:
  std::uint32_t data_blocks_;
  std::uint32_t parity_blocks_;
  std::vector<unsigned char> rows_;    // Of the parity blocks: a coefficient for each data block.
  std::vector<unsigned char> tables_;  // The same as ISA-L multiplies with them.
};

}  // namespace varve::parity
