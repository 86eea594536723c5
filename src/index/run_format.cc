// SPDX-License-Identifier: Apache-2.0
#include "index/run_format.h"

#include <cstring>

#include "base/checksum.h"
#include "base/coding.h"

namespace varve::index {

namespace {

constexpr std::uint32_t kRunMagic = 0x52495656;       // "VVIR"
constexpr std::uint32_t kSnapshotMagic = 0x58495656;  // "VVIX"
constexpr std::uint32_t kRunVersion = 1;
constexpr std::uint32_t kSnapshotVersion = 2;
constexpr std::size_t kRunRefBytes = 24;
constexpr std::uint64_t kIdBytesMax = std::uint64_t{1} << 40;
constexpr std::uint32_t kFilterBits = kBlockBodyBytes * 8;
constexpr int kFilterProbes = 6;

std::uint64_t checksum_of(std::span<const std::byte, kBlockBytes> block, std::uint64_t number) {
  return base::checksum64(block.first(kBlockBodyBytes)) ^ number;
}

// Calls `visit` with the bits of a tag, until `visit` returns false. The tag's first bytes
// determine the block, so the bits come from later bytes.
template <typename Visit>
bool for_each_bit(const Tag& tag, Visit&& visit) {
  const auto first = base::load_le<std::uint32_t>(tag.data() + 8);
  const auto step = base::load_le<std::uint32_t>(tag.data() + 12) | 1U;
  for (std::uint32_t i = 0; i < kFilterProbes; ++i) {
    const auto hash = static_cast<std::uint64_t>(static_cast<std::uint32_t>(first + i * step));
    if (!visit(static_cast<std::uint32_t>((hash * kFilterBits) >> 32))) return false;
  }
  return true;
}

}  // namespace

void seal_block(Block& block, std::uint64_t number) {
  base::store_le(block.data() + kBlockBodyBytes, checksum_of(block, number));
}

bool is_sound(std::span<const std::byte, kBlockBytes> block, std::uint64_t number) {
  return base::load_le<std::uint64_t>(block.data() + kBlockBodyBytes) == checksum_of(block, number);
}

Block encode_run_header(const RunHeader& header) {
  std::string out;
  base::ByteWriter w(out);
  w.u32(kRunMagic);
  w.u32(kRunVersion);
  w.u32(static_cast<std::uint32_t>(header.series));
  w.u32(header.number);
  w.u64(header.entries);
  w.u64(header.shape.buckets);
  w.u64(header.shape.tail);
  w.u64(header.id_bytes);
  w.u64(header.id_checksum);
  Block block{};
  std::memcpy(block.data(), out.data(), out.size());
  seal_block(block, 0);
  return block;
}

Result<RunHeader> decode_run_header(std::span<const std::byte, kBlockBytes> block) {
  const Error damaged(ErrorCode::kCorrupt, "the header is damaged");
  if (!is_sound(block, 0)) return damaged;
  base::ByteReader r(block);
  if (r.u32() != kRunMagic || r.u32() != kRunVersion) return damaged;
  RunHeader header;
  header.series = static_cast<SeriesId>(r.u32());
  header.number = r.u32();
  header.entries = r.u64();
  header.shape.buckets = r.u64();
  header.shape.tail = r.u64();
  header.id_bytes = r.u64();
  header.id_checksum = r.u64();
  const auto& shape = header.shape;
  const bool plausible = shape.buckets != 0 && shape.buckets <= kBucketsMax &&
                         shape.tail <= kBucketsMax && header.id_bytes <= kIdBytesMax &&
                         header.entries <= shape.entry_blocks() * kBlockEntries;
  return plausible ? Result<RunHeader>(header) : damaged;
}

Entry entry_at(std::span<const std::byte, kBlockBytes> block, std::size_t position) {
  Entry entry;
  const auto* const at = block.data() + position * sizeof(Entry);
  std::memcpy(entry.tag.data(), at, entry.tag.size());
  entry.birth = base::load_le<std::uint32_t>(at + 20);
  entry.ordinal = base::load_le<std::uint32_t>(at + 24);
  return entry;
}

void put_entry(Block& block, std::size_t position, const Entry& entry) {
  auto* const at = block.data() + position * sizeof(Entry);
  std::memcpy(at, entry.tag.data(), entry.tag.size());
  base::store_le(at + 20, entry.birth);
  base::store_le(at + 24, entry.ordinal);
}

void add_to_filter(Block& filter, const Tag& tag) {
  for_each_bit(tag, [&](std::uint32_t bit) {
    filter[bit / 8] |= static_cast<std::byte>(1U << (bit % 8));
    return true;
  });
}

bool may_contain(std::span<const std::byte, kBlockBytes> filter, const Tag& tag) {
  return for_each_bit(tag, [&](std::uint32_t bit) {
    return (filter[bit / 8] & static_cast<std::byte>(1U << (bit % 8))) != std::byte{0};
  });
}

std::string encode_snapshot(SeriesId series, VersionNumber version,
                            const std::vector<RunRef>& runs) {
  std::string out;
  base::ByteWriter w(out);
  w.u32(kSnapshotMagic);
  w.u32(kSnapshotVersion);
  w.u32(static_cast<std::uint32_t>(series));
  w.u32(static_cast<std::uint32_t>(version));
  w.u64(runs.size());
  for (const auto& run : runs) {
    w.u32(run.number);
    w.u32(0);
    w.u64(run.entries);
    w.u64(run.header_checksum);
  }
  w.u64(base::checksum64(base::as_bytes(out)));
  return out;
}

VersionNumber snapshot_version(std::string_view bytes) {
  constexpr std::size_t kVersionOffset = 12;
  if (bytes.size() < kSnapshotHeaderBytes) return {};
  return static_cast<VersionNumber>(
      base::load_le<std::uint32_t>(base::as_bytes(bytes).data() + kVersionOffset));
}

Result<std::vector<RunRef>> decode_snapshot(std::string_view bytes, SeriesId series,
                                            VersionNumber version) {
  const Error damaged(ErrorCode::kCorrupt, "the snapshot of the index is damaged");
  base::ByteReader r(bytes);
  const bool is_snapshot = r.u32() == kSnapshotMagic;
  const auto layout = r.u32();
  const bool ours = r.u32() == static_cast<std::uint32_t>(series) &&
                    r.u32() == static_cast<std::uint32_t>(version);
  const auto count = r.u64();
  if (!is_snapshot || !ours || !r.ok()) return damaged;
  if (layout == 1) return Error(ErrorCode::kUnsupported, "the index has an older layout");
  if (layout != kSnapshotVersion || count > r.left() / kRunRefBytes ||
      r.left() != count * kRunRefBytes + sizeof(std::uint64_t)) {
    return damaged;
  }
  std::vector<RunRef> runs(count);
  for (auto& run : runs) {
    run.number = r.u32();
    if (r.u32() != 0) return damaged;
    run.entries = r.u64();
    run.header_checksum = r.u64();
  }
  const auto body = bytes.substr(0, bytes.size() - sizeof(std::uint64_t));
  if (r.u64() != base::checksum64(base::as_bytes(body)) || !r.ok()) return damaged;
  return runs;
}

}  // namespace varve::index
