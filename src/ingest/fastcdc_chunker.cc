// SPDX-License-Identifier: Apache-2.0
#include "ingest/fastcdc_chunker.h"

#include <algorithm>
#include <bit>

namespace varve::ingest {
namespace {

/// Returns the table: the numbers of SplitMix64 from the seed 0, in order.
constexpr FastCdcTable make_table() {
  FastCdcTable table{};
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

constexpr FastCdcChunker::Tables with_shifted(const FastCdcTable& gear) {
  FastCdcChunker::Tables tables{gear, {}};
  for (std::size_t i = 0; i < gear.size(); ++i) tables.shifted[i] = gear[i] << 1;
  return tables;
}

constexpr FastCdcChunker::Tables kTables = with_shifted(make_table());

/// Scans [from, to) under one mask. Returns the length of the chunk ending there, or 0.
std::size_t find_cut(const FastCdcChunker::Tables& tables, const std::byte* data, std::size_t from,
                     std::size_t to, std::uint64_t mask, std::uint64_t& hash) {
  const std::uint64_t mask_shifted = mask << 1;
  std::size_t i = from;
  for (; i + 1 < to; i += 2) {
    hash = (hash << 2) + tables.shifted[std::to_integer<unsigned>(data[i])];
    if ((hash & mask_shifted) == 0) return i + 1;
    hash += tables.gear[std::to_integer<unsigned>(data[i + 1])];
    if ((hash & mask) == 0) return i + 2;
  }
  if (i < to) {
    hash = (hash << 1) + tables.gear[std::to_integer<unsigned>(data[i])];
    if ((hash & mask) == 0) return i + 1;
  }
  return 0;
}

}  // namespace

// Bits spread evenly over bits 62 down to 15. Bit 63 stays free, because the first byte of a pair
// is tested one bit further left. Low bits depend on too few bytes.
std::uint64_t fastcdc_mask(unsigned count) {
  std::uint64_t mask = 0;
  for (unsigned i = 0; i < count; ++i) mask |= 1ULL << (62 - i * 48 / count);
  return mask;
}

FastCdcChunker::FastCdcChunker(ChunkSizes sizes)
    : id_(kId),
      tables_(&kTables),
      sizes_(sizes),
      strong_(fastcdc_mask(static_cast<unsigned>(std::countr_zero(sizes.avg)) + 2)),
      loose_(fastcdc_mask(static_cast<unsigned>(std::countr_zero(sizes.avg)) - 2)) {}

FastCdcChunker::FastCdcChunker(std::string_view keyed_id, ChunkSizes sizes,
                               const FastCdcTable& table)
    : FastCdcChunker(sizes) {
  id_ = keyed_id;
  keyed_ = std::make_unique<const Tables>(with_shifted(table));
  tables_ = keyed_.get();
}

std::uint64_t FastCdcChunker::roll(std::uint64_t hash, std::byte next) const {
  return (hash << 1) + tables_->gear[std::to_integer<unsigned>(next)];
}

std::size_t FastCdcChunker::next(std::span<const std::byte> data) const {
  if (data.size() <= sizes_.min) return data.size();
  const std::size_t end = std::min<std::size_t>(sizes_.max, data.size());
  const std::size_t avg = std::min<std::size_t>(sizes_.avg, end);
  std::uint64_t hash = 0;
  if (const auto cut = find_cut(*tables_, data.data(), sizes_.min, avg, strong_, hash); cut != 0)
    return cut;
  if (const auto cut = find_cut(*tables_, data.data(), avg, end, loose_, hash); cut != 0)
    return cut;
  return end;
}

}  // namespace varve::ingest
