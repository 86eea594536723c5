// SPDX-License-Identifier: Apache-2.0
// Replaces the kernel's random bytes in a test program by bytes that repeat, as in a virtual
// machine that goes back to a snapshot.
#pragma once

#include <openssl/rand.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace varve::test {

enum class RandomBytes : std::uint8_t {
  kKernels,   ///< Those of the kernel.
  kRepeated,  ///< Each request gets the same bytes.
  kStream,    ///< Requests get a stream of bytes, which follows from a seed.
};

struct RandomSource {
  std::atomic<RandomBytes> kind = RandomBytes::kKernels;
  std::atomic<std::uint64_t> state = 0;
  std::atomic<std::uint64_t> requests = 0;  ///< Requests that did not get the kernel's bytes.
};
inline RandomSource random_source;

/// Repeats the random bytes of the process from its construction to its destruction.
class RepeatedRandom {
 public:
  /// Each request gets the same bytes: the generator is set back before each one.
  RepeatedRandom() { random_source.kind = RandomBytes::kRepeated; }
  /// The bytes follow from the seed. A second object with the seed sets the generator back.
  explicit RepeatedRandom(std::uint64_t seed) {
    random_source.state = seed;
    random_source.kind = RandomBytes::kStream;
  }
  RepeatedRandom(const RepeatedRandom&) = delete;
  RepeatedRandom& operator=(const RepeatedRandom&) = delete;
  ~RepeatedRandom() { random_source.kind = RandomBytes::kKernels; }
};

/// Fills `out` as the kind of the source says. Returns false for the kernel's bytes.
inline bool fill_repeated(void* out, std::size_t bytes) {
  const auto kind = random_source.kind.load();
  if (kind == RandomBytes::kKernels) return false;
  ++random_source.requests;
  auto* const to = static_cast<unsigned char*>(out);
  std::uint64_t repeated = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15;  // SplitMix64.
    std::uint64_t z = kind == RandomBytes::kRepeated ? repeated += kStep
                                                     : random_source.state.fetch_add(kStep) + kStep;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    to[i] = static_cast<unsigned char>(z >> 32);
  }
  return true;
}

}  // namespace varve::test

// The linker takes these for the calls of Varve's code. They are weak, so that several sources of a
// program may include this file.
extern "C" __attribute__((weak)) ssize_t getrandom(void* out, size_t bytes, unsigned flags) {
  if (varve::test::fill_repeated(out, bytes)) return static_cast<ssize_t>(bytes);
  return ::syscall(SYS_getrandom, out, bytes, flags);
}
extern "C" __attribute__((weak)) int RAND_bytes(unsigned char* out, int bytes) {
  if (varve::test::fill_repeated(out, static_cast<std::size_t>(bytes))) return 1;
  return RAND_bytes_ex(nullptr, out, static_cast<std::size_t>(bytes), 0);
}
extern "C" __attribute__((weak)) int RAND_priv_bytes(unsigned char* out, int bytes) {
  return RAND_bytes(out, bytes);
}
