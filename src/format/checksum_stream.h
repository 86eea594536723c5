// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace varve::format {

/// checksum64() (format/container.h) of bytes that come piece by piece. Not thread-safe.
class ChecksumStream {
 public:
  ChecksumStream();
  ~ChecksumStream();
  void add(std::span<const std::byte> bytes);
  /// The checksum of all bytes so far.
  [[nodiscard]] std::uint64_t sum() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace varve::format
