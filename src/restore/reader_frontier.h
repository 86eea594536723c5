// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "restore/file_stream.h"

namespace varve::restore {

/// Distance by which requests of the kernel's readahead may overtake each other.
inline constexpr std::uint64_t kReorderBytes = 1U << 20;
/// Maximum distance of a reader from the reader's frontier, in files or bytes.
inline constexpr std::uint64_t kFilesAhead = 8;
inline constexpr std::uint64_t kBytesAhead = std::uint64_t{16} << 20;

/// Place of a reader in a stream of files, for readers with and without gaps. Not thread-safe.
class ReaderFrontier {
 public:
  /// Begins at a position of the stream.
  explicit ReaderFrontier(std::uint64_t position) : position_(position), steady_since_(position) {}

  /// Returns the position before which everything was read or left out.
  [[nodiscard]] std::uint64_t position() const { return position_; }
  /// Returns the number of bytes read up to the frontier without a gap.
  [[nodiscard]] std::uint64_t steady_bytes() const { return position_ - steady_since_; }
  /// Notes a read of `bytes` at a position in `file`.
  void advance(std::uint64_t position, std::uint64_t bytes, const StreamFile& file);
  /// Returns whether a read beyond the frontier, at `data_offset` of `file`, may come from the
  /// reader, after the reader has left out the files in between.
  [[nodiscard]] bool may_go_on_in(const StreamFile& file, std::uint64_t data_offset) const;

 private:
  std::uint64_t position_;
  std::uint64_t steady_since_;  // Position from which nothing was left out up to the frontier.
  std::uint64_t file_ = 0;      // Number of the file at the frontier.
  bool at_file_end_ = true;     // Whether the file at the frontier was read to its end.
};

}  // namespace varve::restore
