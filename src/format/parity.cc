// SPDX-License-Identifier: Apache-2.0
#include "format/parity.h"

#include <algorithm>

#include "base/assert.h"
#include "base/checksum.h"
#include "base/coding.h"
#include "format/container.h"
#include "varve/arrange.h"

namespace varve::format {

namespace {

constexpr std::uint16_t kParityFormat = 1;
constexpr std::size_t kReservedAt = 40;
constexpr std::size_t kSumAt = 56;
constexpr std::size_t kMemberBytes = 12;
constexpr std::size_t kSumBytes = 8;

Error damaged_parity(const char* what) {
  return {ErrorCode::kCorrupt, std::string("parity file: ") + what};
}

std::uint32_t rounded_up(std::uint64_t value, std::uint64_t divisor) {
  return static_cast<std::uint32_t>((value + divisor - 1) / divisor);
}

}  // namespace

ParityShape ParityShape::of(std::uint32_t blocks, std::uint32_t percent) {
  VARVE_ASSERT(blocks != 0 && percent != 0 && percent <= kParityPercentMax);
  ParityShape shape;
  shape.blocks = blocks;
  shape.codewords = rounded_up(blocks, kParityDataBlocksMax);
  shape.data_blocks = rounded_up(blocks, shape.codewords);
  shape.parity_blocks = rounded_up(std::uint64_t{shape.data_blocks} * percent, 100);
  return shape;
}

std::size_t ParityHeader::member_bytes() const { return members * kMemberBytes; }

std::size_t ParityHeader::sum_bytes() const {
  return (std::size_t{blocks} + ParityShape::of(blocks, percent).parity_total()) * kSumBytes;
}

std::uint64_t ParityHeader::file_bytes() const {
  return 2 * std::uint64_t{index_bytes()} +
         std::uint64_t{ParityShape::of(blocks, percent).parity_total()} * kParityBlockBytes;
}

EncodedParityIndex encode_parity_index(ParityIndex& index, const ParitySums& sums) {
  EncodedParityIndex encoded;
  index.blocks = 0;
  base::ByteWriter members(encoded.members);
  for (const auto& member : index.members) {
    index.blocks += member.blocks();
    members.u32(static_cast<std::uint32_t>(member.segment));
    members.u64(member.bytes);
  }
  base::ByteWriter all(encoded.sums);
  for (const auto sum : sums.data) all.u64(sum);
  for (const auto sum : sums.parity) all.u64(sum);
  base::ByteWriter header(encoded.header);
  header.u32(kParityMagic);
  header.u16(kParityFormat);
  header.u16(static_cast<std::uint16_t>(index.percent));
  header.u32(static_cast<std::uint32_t>(index.store));
  header.u32(static_cast<std::uint32_t>(index.members.size()));
  header.u32(index.blocks);
  header.u32(0);
  header.u64(base::checksum64(base::as_bytes(encoded.members)));
  header.u64(base::checksum64(base::as_bytes(encoded.sums)));
  encoded.header.resize(kSumAt, '\0');
  header.u64(base::checksum64(base::as_bytes(encoded.header)));
  return encoded;
}

Result<ParityHeader> decode_parity_header(std::span<const std::byte> bytes) {
  if (bytes.size() < kParityHeaderBytes) return damaged_parity("it is cut off");
  const auto header = bytes.first(kParityHeaderBytes);
  base::ByteReader r(header);
  if (r.u32() != kParityMagic) return damaged_parity("this is not a parity file");
  const auto format = r.u16();
  if (base::checksum64(header.first(kSumAt)) != base::load_le<std::uint64_t>(&header[kSumAt])) {
    return damaged_parity("the header's checksum is wrong");
  }
  if (format != kParityFormat) {
    return Error(ErrorCode::kUnsupported, "a parity file of a newer format; use a newer Varve");
  }
  ParityHeader decoded;
  decoded.percent = r.u16();
  decoded.store = static_cast<StoreId>(r.u32());
  decoded.members = r.u32();
  decoded.blocks = r.u32();
  const bool padded = r.u32() == 0;
  decoded.members_checksum = r.u64();
  decoded.sums_checksum = r.u64();
  const auto rest = header.subspan(kReservedAt, kSumAt - kReservedAt);
  const bool zeros =
      std::all_of(rest.begin(), rest.end(), [](std::byte b) { return b == std::byte{}; });
  if (!padded || !zeros || decoded.percent < 1 || decoded.percent > kParityPercentMax ||
      decoded.members < 1 || decoded.members > kParityMembersMax ||
      decoded.blocks < decoded.members || decoded.blocks > kParityBlocksMax) {
    return damaged_parity("the header is impossible");
  }
  return decoded;
}

Result<ParityIndex> decode_parity_members(const ParityHeader& header,
                                          std::span<const std::byte> bytes) {
  if (bytes.size() != header.member_bytes()) return damaged_parity("it is cut off");
  if (base::checksum64(bytes) != header.members_checksum) {
    return damaged_parity("the checksum of its members is wrong");
  }
  ParityIndex index;
  index.store = header.store;
  index.percent = header.percent;
  index.blocks = header.blocks;
  base::ByteReader r(bytes);
  std::uint64_t blocks = 0;
  for (std::uint32_t i = 0; i < header.members; ++i) {
    ParityMember member;
    member.segment = static_cast<SegmentNumber>(r.u32());
    member.bytes = r.u64();
    if (member.bytes == 0 || member.bytes > std::uint64_t{kParityBlocksMax} * kParityBlockBytes) {
      return damaged_parity("a member's length is impossible");
    }
    blocks += member.blocks();
    index.members.push_back(member);
  }
  if (blocks != header.blocks) return damaged_parity("its members have another number of blocks");
  return index;
}

Result<ParitySums> decode_parity_sums(const ParityHeader& header,
                                      std::span<const std::byte> bytes) {
  if (bytes.size() != header.sum_bytes()) return damaged_parity("it is cut off");
  if (base::checksum64(bytes) != header.sums_checksum) {
    return damaged_parity("the checksum of its checksums is wrong");
  }
  ParitySums sums;
  base::ByteReader r(bytes);
  sums.data.resize(header.blocks);
  for (auto& sum : sums.data) sum = r.u64();
  sums.parity.resize(ParityShape::of(header.blocks, header.percent).parity_total());
  for (auto& sum : sums.parity) sum = r.u64();
  return sums;
}

}  // namespace varve::format
