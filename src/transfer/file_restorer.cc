// SPDX-License-Identifier: Apache-2.0
#include "transfer/file_restorer.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/system_error.h"

namespace varve::transfer {
namespace {

constexpr std::uint64_t kReadBytes = 1ULL << 20;
// Smaller than most frames, so a damaged frame costs few extra reads.
constexpr std::uint64_t kSalvageBytes = 4096;

}  // namespace

std::string damage_text(const UnreadableData& lost) {
  return fmt::format("damaged: {} bytes in {} places from offset {} on", lost.bytes, lost.ranges,
                     lost.first_offset);
}

FileRestorer::FileRestorer(bool sparse, Advance advance)
    : sparse_(sparse), advance_(std::move(advance)) {}

void FileRestorer::begin() {
  unreadable_ = {};
  unreadable_end_ = 0;
}

Result<UnreadableData> FileRestorer::copy(FileReader& source, FileSink& sink,
                                          std::uint64_t offset) {
  begin();
  const std::uint64_t size = source.size();
  while (offset < size) {
    std::uint64_t begin = offset;
    std::uint64_t end = size;
    // If the answers are inconsistent, reads the rest as data; the read then fails with its own
    // error.
    if (auto data = source.seek_data(offset); data) {
      begin = std::clamp(*data, offset, size);
      if (auto hole = source.seek_hole(begin); hole && *hole > begin) end = std::min(*hole, size);
    } else if (data.error().code() == ErrorCode::kPastEnd) {
      begin = size;
    }
    if (begin > offset) {
      VARVE_TRY(sparse_ ? sink.skip({offset, begin}) : put_zeros(sink, {offset, begin}));
    }
    VARVE_TRY(copy_range(source, sink, {begin, end}));
    offset = end;
  }
  return std::exchange(unreadable_, {});
}

Result<UnreadableData> FileRestorer::copy_ranges(FileReader& source, FileSink& sink,
                                                 std::span<const ByteRange> ranges) {
  begin();
  for (const ByteRange& range : ranges) VARVE_TRY(copy_range(source, sink, range));
  return std::exchange(unreadable_, {});
}

Result<void> FileRestorer::copy_range(FileReader& source, FileSink& sink, ByteRange range) {
  for (std::uint64_t at = range.begin; at < range.end;) {
    ByteRange piece{at, std::min(range.end, at + kReadBytes)};
    auto got = source.read_as({.offset = at,
                               .bytes = static_cast<std::size_t>(piece.end - at),
                               .memory = [&](std::size_t) { return room(piece); },
                               .may_lend = true});
    if (!got && base::lacks_resources(got.error())) return std::move(got).error();
    if (got && got->is_lent()) {
      piece.end = at + got->lent.bytes.size();
      VARVE_TRY(sink.put(piece, std::move(got->lent)));
    } else if (is_whole(piece, got ? Result(got->copied.value_or(0)) : got.error())) {
      VARVE_TRY(put_room(sink, piece));
    } else {
      VARVE_TRY(salvage(source, sink, piece));
    }
    if (!advance_(piece.end - piece.begin)) {
      return Error(ErrorCode::kInterrupted, "interrupted");
    }
    at = piece.end;
  }
  return {};
}

Result<void> FileRestorer::salvage(FileReader& source, FileSink& sink, ByteRange range) {
  for (std::uint64_t at = range.begin; at < range.end;) {
    const ByteRange block{at, std::min(range.end, at + kSalvageBytes)};
    if (try_read(source, block)) {
      VARVE_TRY(put_room(sink, block));
    } else {
      VARVE_TRY(salvage_block(source, sink, block));
    }
    if (lacking_) return *std::exchange(lacking_, std::nullopt);
    at = block.end;
  }
  return {};
}

Result<void> FileRestorer::salvage_block(FileReader& source, FileSink& sink, ByteRange block) {
  ByteRange bad = block;
  // Finds the longest readable beginning and the longest readable end by bisection.
  if (try_read(source, {block.begin, block.begin + 1})) {
    std::uint64_t good = block.begin + 1;
    std::uint64_t fails = block.end;
    while (fails - good > 1) {
      const std::uint64_t middle = good + (fails - good) / 2;
      (try_read(source, {block.begin, middle}) ? good : fails) = middle;
    }
    if (try_read(source, {block.begin, good})) {
      VARVE_TRY(put_room(sink, {block.begin, good}));
      bad.begin = good;
    }
  }
  if (try_read(source, {block.end - 1, block.end})) {
    std::uint64_t good = block.end - 1;
    std::uint64_t fails = bad.begin;
    while (good - fails > 1) {
      const std::uint64_t middle = fails + (good - fails) / 2;
      (try_read(source, {middle, block.end}) ? good : fails) = middle;
    }
    if (try_read(source, {good, block.end})) {
      VARVE_TRY(put_room(sink, {good, block.end}));
      bad.end = good;
    }
  }
  if (bad.begin < bad.end) add_unreadable(bad);
  return {};
}

std::span<std::byte> FileRestorer::room(ByteRange range) {
  const auto bytes = static_cast<std::size_t>(range.end - range.begin);
  if (!room_ || room_bytes_ < bytes) {
    room_ = std::make_shared_for_overwrite<std::byte[]>(bytes);
    room_bytes_ = bytes;
  }
  return {room_.get(), bytes};
}

Result<void> FileRestorer::put_room(FileSink& sink, ByteRange range) {
  const std::span<const std::byte> bytes = room(range);
  return sink.put(range, {std::exchange(room_, nullptr), bytes});
}

bool FileRestorer::try_read(FileReader& source, ByteRange range) {
  const auto out = room(range);
  return is_whole(range, source.read(range.begin, out));
}

bool FileRestorer::is_whole(ByteRange range, const Result<std::size_t>& got) {
  if (got && *got == range.end - range.begin) return true;
  if (!got && base::lacks_resources(got.error())) lacking_ = got.error();
  if (unreadable_.reason.empty())
    unreadable_.reason = got ? "the data ends too early" : got.error().message();
  return false;
}

Result<void> FileRestorer::put_zeros(FileSink& sink, ByteRange range) {
  for (std::uint64_t at = range.begin; at < range.end;) {
    const ByteRange piece{at, std::min(range.end, at + kReadBytes)};
    std::ranges::fill(room(piece), std::byte{0});
    VARVE_TRY(put_room(sink, piece));
    if (!advance_(0)) return Error(ErrorCode::kInterrupted, "interrupted");
    at = piece.end;
  }
  return {};
}

void FileRestorer::add_unreadable(ByteRange range) {
  if (unreadable_.ranges == 0) unreadable_.first_offset = range.begin;
  if (unreadable_.ranges == 0 || unreadable_end_ != range.begin) ++unreadable_.ranges;
  unreadable_.bytes += range.end - range.begin;
  unreadable_end_ = range.end;
}

}  // namespace varve::transfer
