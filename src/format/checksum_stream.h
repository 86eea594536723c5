// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace varve::format {

/// Computes checksum64() (format/container.h) of bytes that arrive in pieces. Not thread-safe.
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

}  // namespace varve::format
