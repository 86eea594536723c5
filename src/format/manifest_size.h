// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace varve::format {

/// Equal records after all other records of a manifest.
struct ManifestTail {
  std::uint64_t records = 0;
  std::size_t key_bytes = 0;  ///< The records have no value.
};

/// Computes the length that an uncompressed manifest by ManifestEncoder would have, from the sizes
/// of the records. Not thread-safe.
class ManifestSize {
 public:
  /// Adds a record. Records of one group follow each other; group 0 has the records that always
  /// stay, and the first record belongs to group 0.
  void add(std::uint32_t group, std::size_t key_bytes, std::size_t value_bytes);

  /// Returns the length of the file, in bytes.
  [[nodiscard]] std::uint64_t bytes(const ManifestTail& tail = {});
  /// Returns the length without the records of a group. Costs a small part of adding them all.
  [[nodiscard]] std::uint64_t bytes_without(std::uint32_t group, const ManifestTail& tail = {});

 private:
  struct Piece {
    std::uint32_t bytes;  ///< Bytes that the piece takes in a block.
    std::uint32_t bound;  ///< Bytes that must be free in the block.
  };
  struct Group {
    std::size_t first = 0;
    std::size_t end = 0;
  };
  /// The blocks of a file before a tail.
  struct Blocks {
    std::uint64_t bytes = 0;  ///< Bytes of all pieces.
    std::uint64_t count = 0;
    std::uint64_t filled = 0;  ///< Bytes in the last block.
  };
  [[nodiscard]] static std::uint64_t with_tail(Blocks blocks, const ManifestTail& tail);
  [[nodiscard]] static Piece piece_of(std::size_t key_bytes, std::size_t value_bytes);
  void add_piece(std::size_t key_bytes, std::size_t value_bytes);
  /// Computes the blocks of all pieces.
  void finish();
  /// Returns the first piece from `at` on without room in a block whose earlier pieces take
  /// `filled` bytes.
  [[nodiscard]] std::size_t fill(std::size_t at, std::uint64_t filled) const;

  std::vector<Piece> pieces_;
  std::map<std::uint32_t, Group> groups_;
  std::vector<std::uint64_t> before_;    // before_[i]: bytes of the pieces before i.
  std::vector<std::uint32_t> block_of_;  // block_of_[i]: the block of piece i.
  std::vector<std::size_t> starts_;      // First piece of each block.
  std::vector<std::uint32_t>
      blocks_after_;  // blocks_after_[i]: number of blocks if a block starts at piece i.
  std::vector<std::size_t> next_;  // next_[i]: first piece after a block from i on.
  std::vector<std::size_t> last_;  // last_[i]: start of the last block if a block starts at i.
};

}  // namespace varve::format
