// SPDX-License-Identifier: Apache-2.0
// The contents known to an open version to be in the own stores of other series.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_set>

#include "base/coding.h"
#include "varve/types.h"

namespace varve::series {

/// Remembers fingerprints by the first 8 bytes: a collision gives a wrong hint at no cost. Not
/// thread-safe.
class KnownElsewhere {
 public:
  /// Bounds the memory to about 3 MiB, as long as no lookup is larger.
  static constexpr std::size_t kMax = 65536;

  /// Begins a lookup of at most `fingerprints` chunks. Only begin_lookup() may forget fingerprints
  /// of earlier lookups.
  void begin_lookup(std::size_t fingerprints) {
    if (prefixes_.size() + fingerprints > kMax) prefixes_.clear();
  }
  void add(const Fingerprint& fingerprint) { prefixes_.insert(prefix_of(fingerprint)); }
  [[nodiscard]] bool contains(const Fingerprint& fingerprint) const {
    return prefixes_.contains(prefix_of(fingerprint));
  }
  [[nodiscard]] std::size_t size() const { return prefixes_.size(); }

 private:
  static std::uint64_t prefix_of(const Fingerprint& fingerprint) {
    return base::load_le<std::uint64_t>(fingerprint.data());
  }

  std::unordered_set<std::uint64_t> prefixes_;
};

}  // namespace varve::series
