// SPDX-License-Identifier: Apache-2.0
#include "support/noise.h"

template class std::mersenne_twister_engine<std::uint_fast32_t, 32, 624, 397, 31, 0x9908b0dfUL, 11,
                                            0xffffffffUL, 7, 0x9d2c5680UL, 15, 0xefc60000UL, 18,
                                            1812433253UL>;
template class std::mersenne_twister_engine<
    std::uint_fast64_t, 64, 312, 156, 31, 0xb5026f5aa96619e9ULL, 29, 0x5555555555555555ULL, 17,
    0x71d67fffeda60000ULL, 37, 0xfff7eee000000000ULL, 43, 6364136223846793005ULL>;

namespace varve::test {

std::string noise(std::size_t bytes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string out(bytes, '\0');
  for (char& c : out) c = static_cast<char>(random());
  return out;
}

}  // namespace varve::test
