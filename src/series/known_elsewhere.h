// SPDX-License-Identifier: Apache-2.0
// The contents that other series have in their own stores, as far as an open version has met them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_set>

#include "base/coding.h"
#include "varve/types.h"

namespace varve::series {

/// Remembers fingerprints by their first 8 bytes: a match of others is a hint that is wrong, which
/// costs nothing. Not thread-safe.
class KnownElsewhere {
 public:
  /// Bounds the memory to about 3 MiB, as long as no lookup is larger.
  static constexpr std::size_t kMax = 65536;

  /// Begins a lookup of at most `fingerprints` chunks. May forget those of earlier lookups; nothing
  /// else does.
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
