// SPDX-License-Identifier: Apache-2.0
// The checksum of the formats on disk: XXH3-64 with seed 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace varve::base {

/// Returns the XXH3-64 of the bytes, with seed 0.
[[nodiscard]] std::uint64_t checksum64(std::span<const std::byte> bytes);

/// Computes checksum64() of bytes arriving in pieces. Not thread-safe.
class ChecksumStream {
 public:
  ChecksumStream();
  ~ChecksumStream();
  void add(std::span<const std::byte> bytes);
  /// Returns the checksum of all bytes so far.
  [[nodiscard]] std::uint64_t sum() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace varve::base
