// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "varve/result.h"
#include "varve/version_reader.h"

namespace varve::transfer {

/// A part of a file, [begin, end).
struct ByteRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// What of a file could not be read.
struct UnreadableData {
  std::uint64_t bytes = 0;
  std::uint64_t ranges = 0;
  std::uint64_t first_offset = 0;
  std::string reason;  ///< Of the first failed read.
};

/// Copies the data of one file after another out of a version. Not synchronised.
class FileRestorer {
 public:
  /// Called after each written piece with its length; false stops the transfer.
  using Advance = std::function<bool(std::uint64_t bytes)>;

  FileRestorer(bool sparse, Advance advance);

  /// Writes `source` to the new, empty file `fd`. Ranges that cannot be read stay holes and
  /// are returned. An error is one of the target, or kInterrupted.
  [[nodiscard]] Result<UnreadableData> copy(FileReader& source, int fd);

 private:
  [[nodiscard]] Result<void> copy_range(FileReader& source, int fd, ByteRange range);
  /// Saves what is readable of a range in which a read failed, to the byte.
  [[nodiscard]] Result<void> salvage(FileReader& source, int fd, ByteRange range);
  [[nodiscard]] Result<void> salvage_block(FileReader& source, int fd, ByteRange block);
  [[nodiscard]] bool try_read(FileReader& source, ByteRange range);
  [[nodiscard]] Result<void> write_buffer(int fd, ByteRange range);
  [[nodiscard]] Result<void> write_zeros(int fd, ByteRange range);
  void add_unreadable(ByteRange range);

  const bool sparse_;
  const Advance advance_;
  std::vector<std::byte> buffer_;
  UnreadableData unreadable_;
  std::uint64_t unreadable_end_ = 0;
};

}  // namespace varve::transfer
