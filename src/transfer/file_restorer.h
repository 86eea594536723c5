// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "transfer/file_sink.h"
#include "varve/browse.h"
#include "varve/result.h"

namespace varve::transfer {

/// The unreadable data of a file.
struct UnreadableData {
  std::uint64_t bytes = 0;
  std::uint64_t ranges = 0;
  std::uint64_t first_offset = 0;
  std::string reason;  ///< Message of the first failed read.
};

/// Returns "damaged: … bytes in … places from offset … on".
[[nodiscard]] std::string damage_text(const UnreadableData& lost);

/// Reads the data of files from a version, file by file. Not thread-safe.
class FileRestorer {
 public:
  /// Called after each piece with the length of the piece. Returns false to stop the transfer.
  using Advance = std::function<bool(std::uint64_t bytes)>;

  FileRestorer(bool sparse, Advance advance);

  /// Passes the data of `source` from the offset on to `sink`. Leaves out unreadable ranges and
  /// returns the ranges.
  /// Errors: the errors of the sink; kInterrupted.
  [[nodiscard]] Result<UnreadableData> copy(FileReader& source, FileSink& sink,
                                            std::uint64_t offset = 0);
  /// Passes only the given ranges, which must ascend. Passes holes in the ranges as zeros.
  [[nodiscard]] Result<UnreadableData> copy_ranges(FileReader& source, FileSink& sink,
                                                   std::span<const ByteRange> ranges);

 private:
  void begin();
  [[nodiscard]] Result<void> copy_range(FileReader& source, FileSink& sink, ByteRange range);
  /// Passes on all readable bytes of a range with a failed read.
  [[nodiscard]] Result<void> salvage(FileReader& source, FileSink& sink, ByteRange range);
  [[nodiscard]] Result<void> salvage_block(FileReader& source, FileSink& sink, ByteRange block);
  [[nodiscard]] std::span<std::byte> room(ByteRange range);
  [[nodiscard]] Result<void> put_room(FileSink& sink, ByteRange range);
  [[nodiscard]] bool try_read(FileReader& source, ByteRange range);
  [[nodiscard]] bool is_whole(ByteRange range, const Result<std::size_t>& got);
  [[nodiscard]] Result<void> put_zeros(FileSink& sink, ByteRange range);
  void add_unreadable(ByteRange range);

  const bool sparse_;
  const Advance advance_;
  std::shared_ptr<std::byte[]> room_;  // Buffer for the next piece, passed to the sink by put().
  std::size_t room_bytes_ = 0;
  std::optional<Error> lacking_;  // A read lacked descriptors or memory, which is no damage.
  UnreadableData unreadable_;
  std::uint64_t unreadable_end_ = 0;
};

}  // namespace varve::transfer
