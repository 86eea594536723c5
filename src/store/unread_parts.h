// SPDX-License-Identifier: Apache-2.0
// The unreadable parts of a range of a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "store/segment_store.h"
#include "varve/result.h"

namespace varve::store {

/// The unreadable parts of a range, ascending. Offsets count from the start of the range.
class UnreadParts {
 public:
  /// Adds the bytes from `begin` to `end`, behind all earlier added parts.
  void add(std::size_t begin, std::size_t end, Error error);
  /// Adds the parts of another range, which begins at `offset` of the range.
  void add(std::size_t offset, const UnreadParts& other);

  [[nodiscard]] bool empty() const { return parts_.empty(); }
  /// Returns the error of the first unreadable byte from `begin` to `end`; null if all bytes were
  /// read. Lifetime: the UnreadParts object owns the error.
  [[nodiscard]] const Error* find(std::size_t begin, std::size_t end) const;
  /// Returns the unreadable parts of the bytes from `begin` to `end`, as a separate range.
  [[nodiscard]] UnreadParts within(std::size_t begin, std::size_t end) const;

 private:
  struct Part {
    std::size_t begin = 0;
    std::size_t end = 0;
    Error error;
  };
  std::vector<Part> parts_;
};

/// Fills `out` with the bytes of a file from `offset` on. If a read of all bytes fails, reads
/// pieces that begin at multiples of `piece_bytes` of the file. Returns the unreadable parts, where
/// the bytes of `out` are unspecified. `end_error` gives the error of the bytes behind the file's
/// end.
/// Errors: errors that are no damage (base::is_damage()), such as kUnavailable.
[[nodiscard]] Result<UnreadParts> read_around(OpenSegment& file, std::uint64_t offset,
                                              std::span<std::byte> out, std::size_t piece_bytes,
                                              const std::function<Error()>& end_error);

}  // namespace varve::store
