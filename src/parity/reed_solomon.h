// SPDX-License-Identifier: Apache-2.0
// A systematic Reed-Solomon code over GF(2^8), by ISA-L. Restores any lost blocks of a codeword, up
// to the number of parity blocks. (The parity rows are a Cauchy matrix, so each square submatrix of
// the parity rows has an inverse.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace varve::parity {

/// A Reed-Solomon code. Immutable and thus thread-safe. Memory: 32 bytes for each pair of a data
/// block and a parity block.
class ReedSolomon {
 public:
  /// Creates a code. Both numbers must be at least 1, and their sum at most 255.
  ReedSolomon(std::uint32_t data_blocks, std::uint32_t parity_blocks);

  /// Adds the data block at `position` to the codeword's parity blocks. Before the first call, the
  /// parity blocks must be zero. All blocks have `bytes` bytes.
  void add(std::uint32_t position, const std::byte* block, std::span<std::byte* const> parity,
           std::size_t bytes) const;

  /// Restores the blocks `lost` of `data` from its other blocks and the parity blocks. A null
  /// pointer in `parity` is a lost parity block. Returns false and changes nothing if more data
  /// blocks are lost than parity blocks are available.
  [[nodiscard]] bool restore(std::span<std::byte* const> data, std::span<const std::uint32_t> lost,
                             std::span<const std::byte* const> parity, std::size_t bytes) const;

 private:
  std::uint32_t data_blocks_;
  std::uint32_t parity_blocks_;
  // Rows of the parity blocks: a coefficient for each data block.
  std::vector<unsigned char> rows_;
  std::vector<unsigned char> tables_;  // The same coefficients in ISA-L's form for multiplication.
};

}  // namespace varve::parity
