// SPDX-License-Identifier: Apache-2.0
#include "fingerprinting/seeded_random.h"

#include <openssl/rand.h>

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

int fill(unsigned char* out, int bytes) {
  for (int at = 0; at < bytes; ++at) out[at] = static_cast<unsigned char>(next() >> 32);
  return 1;
}

}  // namespace

void seed_random_bytes(std::uint64_t seed) { state = seed * 0x2545f4914f6cdd1dULL; }

}  // namespace varve::fingerprinting

// The linker takes these for the calls of Varve's code; OpenSSL's own calls stay as they are.
extern "C" int RAND_bytes(unsigned char* out, int bytes) {
  return varve::fingerprinting::fill(out, bytes);
}
extern "C" int RAND_priv_bytes(unsigned char* out, int bytes) {
  return varve::fingerprinting::fill(out, bytes);
}
