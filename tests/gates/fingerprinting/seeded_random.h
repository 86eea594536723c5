// SPDX-License-Identifier: Apache-2.0
// Replaces the random bytes of OpenSSL in this program, so that the keys of a trial, and what
// follows from them, are the same in each run.
#pragma once

#include <cstdint>

namespace varve::fingerprinting {

/// Begins the stream of a seed. Keys that are made from now on depend on it alone.
void seed_random_bytes(std::uint64_t seed);

}  // namespace varve::fingerprinting
