// SPDX-License-Identifier: Apache-2.0
#include "fs/node_id.h"

#include "base/assert.h"

namespace varve::fs {
namespace {

constexpr unsigned kSlotShift = 34;
constexpr std::uint64_t kOpenNode = 1ULL << 33;

// st_ino: bit 63 marks hard-linked files and bit 62 open versions. The rest has 10 bits of the
// series, 20 bits of the version and 32 bits of the file. Larger numbers wrap.
constexpr std::uint64_t kLinkedStIno = 1ULL << 63;
constexpr std::uint64_t kOpenStIno = 1ULL << 62;

std::uint64_t version_bits(SeriesId series, std::uint64_t number) {
  return ((static_cast<std::uint64_t>(series) & 0x3ff) << 52) | ((number & 0xfffff) << 32);
}

/// Spreads neighbouring numbers over all bits (the finaliser of SplitMix64).
std::uint64_t mix(std::uint64_t v) {
  v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9ULL;
  v = (v ^ (v >> 27)) * 0x94d049bb133111ebULL;
  return v ^ (v >> 31);
}

}  // namespace

std::uint64_t pack(const NodeId& id) {
  VARVE_ASSERT(id.low <= kLowMax);
  return ((static_cast<std::uint64_t>(id.slot) + 1) << kSlotShift) | (id.open ? kOpenNode : 0) |
         id.low;
}

NodeId unpack(std::uint64_t node_id) {
  NodeId id;
  id.slot = static_cast<std::uint32_t>((node_id >> kSlotShift) - 1);
  id.open = (node_id & kOpenNode) != 0;
  id.low = node_id & kLowMax;
  return id;
}

std::uint32_t generation_of(const SeriesInfo& series) {
  const std::uint64_t made = static_cast<std::uint64_t>(series.created_at.seconds) * 1'000'000'000 +
                             series.created_at.nanoseconds;
  return static_cast<std::uint32_t>(mix(mix(made) + static_cast<std::uint64_t>(series.id))) | 1;
}

std::uint64_t st_ino_of_series(SeriesId series) { return version_bits(series, 0) | 2; }

std::uint64_t st_ino_of_latest(SeriesId series) { return version_bits(series, 0) | 3; }

std::uint64_t st_ino_of_sealed(SeriesId series, VersionNumber number, Rank rank,
                               std::uint64_t link_group) {
  const std::uint64_t version = version_bits(series, static_cast<std::uint64_t>(number));
  if (link_group != 0) return kLinkedStIno | (link_group ^ mix(version));
  return version | (rank & 0xffffffff);
}

std::uint64_t st_ino_of_open(SeriesId series, VersionNumber number, Ino ino) {
  return kOpenStIno | version_bits(series, static_cast<std::uint64_t>(number)) | (ino & 0xffffffff);
}

}  // namespace varve::fs
