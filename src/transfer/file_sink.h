// SPDX-License-Identifier: Apache-2.0
// The destination of a restored file's bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "varve/browse.h"
#include "varve/result.h"

namespace varve::transfer {

/// The range [begin, end) of a file.
struct ByteRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Receives a file's data piece by piece, in the order of the file.
class FileSink {
 public:
  virtual ~FileSink() = default;
  /// Receives all the data of a range.
  [[nodiscard]] virtual Result<void> put(ByteRange range, SharedBytes data) = 0;
  /// Receives a hole: a range without data.
  [[nodiscard]] virtual Result<void> skip(ByteRange range) = 0;
};

/// Writes all of `bytes` at `offset`, or at the descriptor's position if `offset` is nullopt.
[[nodiscard]] Result<void> write_all(int fd, std::span<const std::byte> bytes,
                                     std::optional<std::uint64_t> offset);

}  // namespace varve::transfer
