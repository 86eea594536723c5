// SPDX-License-Identifier: Apache-2.0
#include "ingest/fastcdc_chunker.h"

#include <algorithm>
#include <array>
#include <bit>

namespace varve::ingest {
namespace {

using Table = std::array<std::uint64_t, 256>;

/// Returns the table: the numbers of SplitMix64 from the seed 0, in order.
constexpr Table make_table() {
  Table table{};
  std::uint64_t state = 0;
  for (auto& entry : table) {
    state += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    entry = z ^ (z >> 31);
  }
  return table;
}

constexpr Table shift_table(const Table& table) {
  Table shifted{};
  for (std::size_t i = 0; i < table.size(); ++i) shifted[i] = table[i] << 1;
  return shifted;
}

constexpr Table kGear = make_table();
constexpr Table kGearShifted = shift_table(kGear);

/// Returns `count` bits spread evenly over bits 62 down to 15. Bit 63 stays free, because the first
/// byte of a pair is tested one bit further left. Low bits depend on too few bytes.
std::uint64_t spread_bits(unsigned count) {
  std::uint64_t mask = 0;
  for (unsigned i = 0; i < count; ++i) mask |= 1ULL << (62 - i * 48 / count);
  return mask;
}

/// Scans [from, to) under one mask. Returns the length of the chunk that ends there, or 0.
std::size_t find_cut(const std::byte* data, std::size_t from, std::size_t to, std::uint64_t mask,
                     std::uint64_t& hash) {
  const std::uint64_t mask_shifted = mask << 1;
  std::size_t i = from;
  for (; i + 1 < to; i += 2) {
    hash = (hash << 2) + kGearShifted[std::to_integer<unsigned>(data[i])];
    if ((hash & mask_shifted) == 0) return i + 1;
    hash += kGear[std::to_integer<unsigned>(data[i + 1])];
    if ((hash & mask) == 0) return i + 2;
  }
  if (i < to) {
    hash = FastCdcChunker::roll(hash, data[i]);
    if ((hash & mask) == 0) return i + 1;
  }
  return 0;
}

}  // namespace

FastCdcChunker::FastCdcChunker(ChunkSizes sizes)
    : sizes_(sizes),
      strong_(spread_bits(static_cast<unsigned>(std::countr_zero(sizes.avg)) + 2)),
      loose_(spread_bits(static_cast<unsigned>(std::countr_zero(sizes.avg)) - 2)) {}

std::uint64_t FastCdcChunker::roll(std::uint64_t hash, std::byte next) {
  return (hash << 1) + kGear[std::to_integer<unsigned>(next)];
}

std::size_t FastCdcChunker::next(std::span<const std::byte> data) const {
  if (data.size() <= sizes_.min) return data.size();
  const std::size_t end = std::min<std::size_t>(sizes_.max, data.size());
  const std::size_t avg = std::min<std::size_t>(sizes_.avg, end);
  std::uint64_t hash = 0;
  if (const auto cut = find_cut(data.data(), sizes_.min, avg, strong_, hash); cut != 0) return cut;
  if (const auto cut = find_cut(data.data(), avg, end, loose_, hash); cut != 0) return cut;
  return end;
}

}  // namespace varve::ingest
