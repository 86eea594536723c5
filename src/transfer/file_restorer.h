// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "transfer/file_sink.h"
#include "varve/result.h"
#include "varve/version_reader.h"

namespace varve::transfer {

/// What of a file could not be read.
struct UnreadableData {
  std::uint64_t bytes = 0;
  std::uint64_t ranges = 0;
  std::uint64_t first_offset = 0;
  std::string reason;  ///< Of the first failed read.
};

/// "damaged: … bytes in … places from offset … on"
[[nodiscard]] std::string damage_text(const UnreadableData& lost);

/// Reads the data of one file after another out of a version. Not synchronised.
class FileRestorer {
 public:
  /// Called after each piece with its length; false stops the transfer.
  using Advance = std::function<bool(std::uint64_t bytes)>;

  FileRestorer(bool sparse, Advance advance);

  /// Gives `source` from the offset on to `sink`. Ranges that cannot be read are left out and
  /// returned. An error is one of the sink, or kInterrupted.
  [[nodiscard]] Result<UnreadableData> copy(FileReader& source, FileSink& sink,
                                            std::uint64_t offset = 0);
  /// The same for some parts of the file, ascending; holes in them are given as zeros.
  [[nodiscard]] Result<UnreadableData> copy_ranges(FileReader& source, FileSink& sink,
                                                   std::span<const ByteRange> ranges);

 private:
  [[nodiscard]] Result<void> copy_range(FileReader& source, FileSink& sink, ByteRange range);
  /// Saves what is readable of a range in which a read failed, to the byte.
  [[nodiscard]] Result<void> salvage(FileReader& source, FileSink& sink, ByteRange range);
  [[nodiscard]] Result<void> salvage_block(FileReader& source, FileSink& sink, ByteRange block);
  [[nodiscard]] std::span<std::byte> room(ByteRange range);
  [[nodiscard]] Result<void> put_room(FileSink& sink, ByteRange range);
  [[nodiscard]] bool try_read(FileReader& source, ByteRange range);
  [[nodiscard]] Result<void> put_zeros(FileSink& sink, ByteRange range);
  void add_unreadable(ByteRange range);

  const bool sparse_;
  const Advance advance_;
  std::shared_ptr<std::byte[]> room_;  // For what is read; the sink's when it is put.
  std::size_t room_bytes_ = 0;
  UnreadableData unreadable_;
  std::uint64_t unreadable_end_ = 0;
};

}  // namespace varve::transfer
