// SPDX-License-Identifier: Apache-2.0
// Where the bytes of a restored file go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "varve/result.h"
#include "varve/version_reader.h"

namespace varve::transfer {

/// A part of a file, [begin, end).
struct ByteRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Takes a file's data piece by piece, in the order of the file.
class FileSink {
 public:
  virtual ~FileSink() = default;
  /// The data of a range, all of it.
  [[nodiscard]] virtual Result<void> put(ByteRange range, SharedBytes data) = 0;
  /// The range has no data: a hole.
  [[nodiscard]] virtual Result<void> skip(ByteRange range) = 0;
};

/// Writes all of `bytes` at `offset`, or where the descriptor stands.
[[nodiscard]] Result<void> write_all(int fd, std::span<const std::byte> bytes,
                                     std::optional<std::uint64_t> offset);

}  // namespace varve::transfer
