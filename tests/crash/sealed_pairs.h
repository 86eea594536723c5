// SPDX-License-Identifier: Apache-2.0
// Counts the keys and nonces of all texts that this process seals.
#pragma once

#include <cstdint>

#include "crypto/seal_observer.h"

namespace varve::test {

/// Observes sealed texts from its construction to its destruction. A process can have only one at a
/// time. Thread-safe.
class SealedPairs {
 public:
  SealedPairs();
  ~SealedPairs();
  SealedPairs(const SealedPairs&) = delete;
  SealedPairs& operator=(const SealedPairs&) = delete;

  struct Counts {
    std::uint64_t texts = 0;
    std::uint64_t keys = 0;
    std::uint64_t repeated = 0;         ///< Texts with a key and nonce that an earlier text had.
    std::uint64_t mixed_keys = 0;       ///< Keys with both random and counted nonces.
    std::uint64_t random_per_key = 0;   ///< The most texts with random nonces under one key.
    std::uint64_t counted_per_key = 0;  ///< The most texts with counted nonces under one key.
  };
  /// Returns the counts so far. Takes time and memory for all of them.
  [[nodiscard]] Counts counts() const;

  /// Adds a text, as the observer does.
  static void see(const crypto::SealedText& sealed);
};

}  // namespace varve::test
