// SPDX-License-Identifier: Apache-2.0
#include "support/noise.h"

#include <map>
#include <mutex>
#include <utility>

template class std::mersenne_twister_engine<std::uint_fast32_t, 32, 624, 397, 31, 0x9908b0dfUL, 11,
                                            0xffffffffUL, 7, 0x9d2c5680UL, 15, 0xefc60000UL, 18,
                                            1812433253UL>;
template class std::mersenne_twister_engine<
    std::uint_fast64_t, 64, 312, 156, 31, 0xb5026f5aa96619e9ULL, 29, 0x5555555555555555ULL, 17,
    0x71d67fffeda60000ULL, 37, 0xfff7eee000000000ULL, 43, 6364136223846793005ULL>;

namespace varve::test {
namespace {

// Campaigns store the same trees hundreds of times.
constexpr std::size_t kKeptBytesMax = std::size_t{4} << 20;      // Of one text.
constexpr std::size_t kAllKeptBytesMax = std::size_t{64} << 20;  // Of all texts.

std::string make_noise(std::size_t bytes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string out(bytes, '\0');
  for (char& c : out) c = static_cast<char>(random());
  return out;
}

}  // namespace

std::string noise(std::size_t bytes, std::uint64_t seed) {
  static std::mutex mutex;
  static std::map<std::pair<std::size_t, std::uint64_t>, std::string> kept;
  static std::size_t kept_bytes = 0;
  if (bytes > kKeptBytesMax) return make_noise(bytes, seed);
  const std::lock_guard lock(mutex);
  const auto found = kept.find({bytes, seed});
  if (found != kept.end()) return found->second;
  auto made = make_noise(bytes, seed);
  if (kept_bytes + bytes <= kAllKeptBytesMax) {
    kept.emplace(std::pair(bytes, seed), made);
    kept_bytes += bytes;
  }
  return made;
}

void fill_compressible(std::span<std::byte> out, std::mt19937& random) {
  constexpr std::size_t kPeriod = 64;
  constexpr std::byte kRepeated{7};
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = i % kPeriod < kPeriod / 2 ? kRepeated : static_cast<std::byte>(random());
  }
}

}  // namespace varve::test
