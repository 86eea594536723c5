// SPDX-License-Identifier: Apache-2.0
// Parity files: redundancy to restore damaged blocks of segments and volumes. docs/FORMAT.md §10.
//
//   header, members, sums | parity blocks | members, sums, header
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::format {

inline constexpr std::uint32_t kParityMagic = 0x41505656;  // "VVPA" in file order
inline constexpr std::size_t kParityHeaderBytes = 64;
/// Size of a block, the unit of loss and restoring: one damaged byte costs a whole block.
inline constexpr std::size_t kParityBlockBytes = 16U << 10;
/// Limit on the data blocks of a codeword. A byte can number the data and parity blocks of a
/// codeword.
inline constexpr std::uint32_t kParityDataBlocksMax = 200;
/// Limits of a group, which bound the memory that a damaged header can request.
inline constexpr std::uint32_t kParityMembersMax = 1U << 16;
inline constexpr std::uint32_t kParityBlocksMax = 1U << 17;

/// The distribution of a group's blocks over codewords. Data block b belongs to codeword b mod
/// `codewords`, so that neighbours, often damaged together, are in different codewords.
struct ParityShape {
  std::uint32_t blocks = 0;     ///< Number of data blocks.
  std::uint32_t codewords = 0;  ///< As few as possible.
  std::uint32_t data_blocks =
      0;  ///< Data blocks of a codeword. A missing last block counts as zeros.
  std::uint32_t parity_blocks =
      0;  ///< Parity blocks of a codeword, and the maximum number of restorable lost blocks.

  /// Returns the shape of a group. Both arguments must be within bounds and not 0.
  [[nodiscard]] static ParityShape of(std::uint32_t blocks, std::uint32_t percent);
  [[nodiscard]] std::uint32_t parity_total() const { return codewords * parity_blocks; }
};

/// A file protected by a group, from the file's start.
struct ParityMember {
  SegmentNumber segment{};  ///< With kVolumeBit.
  std::uint64_t bytes = 0;  ///< Padded with zeros to whole blocks.
  [[nodiscard]] std::uint32_t blocks() const {
    return static_cast<std::uint32_t>((bytes + kParityBlockBytes - 1) / kParityBlockBytes);
  }
  bool operator==(const ParityMember&) const = default;
};

/// The files protected by a group.
struct ParityIndex {
  StoreId store{};
  std::uint32_t percent = 0;          ///< 1 to kParityPercentMax.
  std::uint32_t blocks = 0;           ///< Sum over all members. Derived.
  std::vector<ParityMember> members;  ///< In the order of the blocks; at least one member.
  [[nodiscard]] ParityShape shape() const { return ParityShape::of(blocks, percent); }
  bool operator==(const ParityIndex&) const = default;
};

/// Checksums that reveal damaged blocks.
struct ParitySums {
  std::vector<std::uint64_t> data;    ///< Checksum of each data block, zero padding included.
  std::vector<std::uint64_t> parity;  ///< Checksum of each parity block, codeword by codeword.
  bool operator==(const ParitySums&) const = default;
};

/// The parts of an index; "header, members, sums" begins a file, "members, sums, header" ends it.
struct EncodedParityIndex {
  std::string header;
  std::string members;
  std::string sums;
};
/// Computes index.blocks.
[[nodiscard]] EncodedParityIndex encode_parity_index(ParityIndex& index, const ParitySums& sums);

/// The sizes and checksums of the following parts, as stated by a header.
struct ParityHeader {
  StoreId store{};
  std::uint32_t percent = 0;
  std::uint32_t members = 0;
  std::uint32_t blocks = 0;
  std::uint64_t members_checksum = 0;
  std::uint64_t sums_checksum = 0;
  [[nodiscard]] std::size_t member_bytes() const;
  [[nodiscard]] std::size_t sum_bytes() const;
  /// Returns the offset of the parity blocks in the file, in bytes.
  [[nodiscard]] std::size_t index_bytes() const {
    return kParityHeaderBytes + member_bytes() + sum_bytes();
  }
  [[nodiscard]] std::uint64_t file_bytes() const;
};
/// Errors: kCorrupt; kUnsupported for a newer format. `bytes` may be longer than the header.
[[nodiscard]] Result<ParityHeader> decode_parity_header(std::span<const std::byte> bytes);
/// Decode exactly member_bytes() or sum_bytes() bytes. Errors: kCorrupt if the length, the checksum
/// or a bound is wrong.
[[nodiscard]] Result<ParityIndex> decode_parity_members(const ParityHeader& header,
                                                        std::span<const std::byte> bytes);
[[nodiscard]] Result<ParitySums> decode_parity_sums(const ParityHeader& header,
                                                    std::span<const std::byte> bytes);

}  // namespace varve::format
