// SPDX-License-Identifier: Apache-2.0
#include "fingerprinting/seeded_random.h"

#include <sys/random.h>

#include <atomic>
#include <cstring>

namespace varve::fingerprinting {
namespace {

std::atomic<std::uint64_t> state{0};

std::uint64_t next() {  // SplitMix64.
  std::uint64_t z = state.fetch_add(0x9e3779b97f4a7c15ULL) + 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

}  // namespace

void seed_random_bytes(std::uint64_t seed) { state = seed * 0x2545f4914f6cdd1dULL; }

}  // namespace varve::fingerprinting

// The linker takes it for the calls of Varve's code.
extern "C" ssize_t getrandom(void* out, std::size_t bytes, unsigned /*flags*/) {
  auto* const to = static_cast<unsigned char*>(out);
  for (std::size_t at = 0; at < bytes; ++at) {
    to[at] = static_cast<unsigned char>(varve::fingerprinting::next() >> 32);
  }
  return static_cast<ssize_t>(bytes);
}
