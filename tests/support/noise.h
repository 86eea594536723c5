// SPDX-License-Identifier: Apache-2.0
// Random content for tests, from a library with the optimizer on. Tests are compiled without, and
// spent up to two thirds of their processor time in these loops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>

// std::mt19937 and std::mt19937_64.
extern template class std::mersenne_twister_engine<std::uint_fast32_t, 32, 624, 397, 31,
                                                   0x9908b0dfUL, 11, 0xffffffffUL, 7, 0x9d2c5680UL,
                                                   15, 0xefc60000UL, 18, 1812433253UL>;
extern template class std::mersenne_twister_engine<
    std::uint_fast64_t, 64, 312, 156, 31, 0xb5026f5aa96619e9ULL, 29, 0x5555555555555555ULL, 17,
    0x71d67fffeda60000ULL, 37, 0xfff7eee000000000ULL, 43, 6364136223846793005ULL>;

namespace varve::test {

/// Returns bytes that do not repeat and do not compress, the same bytes for the same seed.
std::string noise(std::size_t bytes, std::uint64_t seed);

/// Fills `out` with bytes of which half repeat, so that zstd compresses the bytes. The other half
/// comes from `random`.
void fill_compressible(std::span<std::byte> out, std::mt19937& random);

}  // namespace varve::test
