// SPDX-License-Identifier: Apache-2.0
#include "layout/chunk_sketch.h"

#include <algorithm>
#include <limits>

namespace varve::layout {
namespace {

constexpr std::size_t kHashesPerValue = 3;
constexpr std::size_t kHashes = std::tuple_size_v<ChunkSketch> * kHashesPerValue;
// One place in 2^kSampledBits is sampled; all places of a chunk below kShortBytes, which would
// otherwise have too few samples.
constexpr unsigned kSampledBits = 6;
constexpr std::size_t kShortBytes = 1024;

// The finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

constexpr std::array<std::uint64_t, 256> make_gear() {
  std::array<std::uint64_t, 256> gear{};
  for (std::size_t i = 0; i < gear.size(); ++i) gear[i] = mix(0x9E3779B97F4A7C15ULL * (i + 1));
  return gear;
}
// Different from the chunker's table: the places must not depend on the boundaries.
constexpr auto kGear = make_gear();

constexpr std::array<std::uint64_t, kHashes> make_factors() {
  std::array<std::uint64_t, kHashes> factors{};
  for (std::size_t i = 0; i < factors.size(); ++i)
    factors[i] = mix(0xD1B54A32D192ED03ULL * (i + 1)) | 1;
  return factors;
}
constexpr auto kFactors = make_factors();

}  // namespace

ChunkSketch sketch_of(std::span<const std::byte> raw) {
  std::array<std::uint64_t, kHashes> least{};
  least.fill(std::numeric_limits<std::uint64_t>::max());
  const bool samples_all = raw.size() < kShortBytes;
  std::uint64_t window = 0;  // Hash of the last 64 bytes.
  for (const std::byte byte : raw) {
    window = (window << 1) + kGear[std::to_integer<std::size_t>(byte)];
    if (!samples_all && (window >> (64 - kSampledBits)) != 0) continue;
    for (std::size_t i = 0; i < kHashes; ++i) {
      const std::uint64_t product = window * kFactors[i];
      least[i] = std::min(least[i], product ^ (product >> 32));
    }
  }
  ChunkSketch sketch{};
  for (std::size_t value = 0; value < sketch.size(); ++value) {
    std::uint64_t sum = value;
    for (std::size_t i = 0; i < kHashesPerValue; ++i) {
      sum = mix(sum ^ least[value * kHashesPerValue + i]);
    }
    sketch[value] = static_cast<std::uint32_t>(sum);
  }
  return sketch;
}

}  // namespace varve::layout
