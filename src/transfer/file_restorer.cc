// SPDX-License-Identifier: Apache-2.0
#include "transfer/file_restorer.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include "transfer/transfer_error.h"

namespace varve::transfer {
namespace {

constexpr std::uint64_t kReadBytes = 1ULL << 20;
// Smaller than any frame, so that a damaged one costs few extra reads.
constexpr std::uint64_t kSalvageBytes = 4096;

Result<void> write_all(int fd, std::span<const std::byte> bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0) {
      if (errno == EINTR) continue;
      return system_error("write", errno);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
  return {};
}

}  // namespace

FileRestorer::FileRestorer(bool sparse, Advance advance)
    : sparse_(sparse), advance_(std::move(advance)), buffer_(kReadBytes) {}

Result<UnreadableData> FileRestorer::copy(FileReader& source, int fd) {
  unreadable_ = {};
  unreadable_end_ = 0;
  const std::uint64_t size = source.size();
  std::uint64_t offset = 0;
  while (offset < size) {
    std::uint64_t begin = offset;
    std::uint64_t end = size;
    // Where the answers make no sense, all that is left is read as data and fails by itself.
    if (auto data = source.seek_data(offset); data) {
      begin = std::clamp(*data, offset, size);
      if (auto hole = source.seek_hole(begin); hole && *hole > begin) end = std::min(*hole, size);
    } else if (data.error().code() == ErrorCode::kNotFound) {
      begin = size;
    }
    if (!sparse_) VARVE_TRY(write_zeros(fd, {offset, begin}));
    VARVE_TRY(copy_range(source, fd, {begin, end}));
    offset = end;
  }
  if (::ftruncate(fd, static_cast<off_t>(size)) != 0) return system_error("ftruncate", errno);
  return std::exchange(unreadable_, {});
}

Result<void> FileRestorer::copy_range(FileReader& source, int fd, ByteRange range) {
  for (std::uint64_t at = range.begin; at < range.end;) {
    const ByteRange piece{at, std::min(range.end, at + kReadBytes)};
    if (try_read(source, piece)) {
      VARVE_TRY(write_buffer(fd, piece));
    } else {
      VARVE_TRY(salvage(source, fd, piece));
    }
    if (!advance_(piece.end - piece.begin)) {
      return Error(ErrorCode::kInterrupted, "interrupted");
    }
    at = piece.end;
  }
  return {};
}

Result<void> FileRestorer::salvage(FileReader& source, int fd, ByteRange range) {
  for (std::uint64_t at = range.begin; at < range.end;) {
    const ByteRange block{at, std::min(range.end, at + kSalvageBytes)};
    if (try_read(source, block)) {
      VARVE_TRY(write_buffer(fd, block));
    } else {
      VARVE_TRY(salvage_block(source, fd, block));
    }
    at = block.end;
  }
  return {};
}

Result<void> FileRestorer::salvage_block(FileReader& source, int fd, ByteRange block) {
  ByteRange bad = block;
  // The longest readable beginning, then the longest readable end, by bisection.
  if (try_read(source, {block.begin, block.begin + 1})) {
    std::uint64_t good = block.begin + 1;
    std::uint64_t fails = block.end;
    while (fails - good > 1) {
      const std::uint64_t middle = good + (fails - good) / 2;
      (try_read(source, {block.begin, middle}) ? good : fails) = middle;
    }
    if (try_read(source, {block.begin, good})) {
      VARVE_TRY(write_buffer(fd, {block.begin, good}));
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
      VARVE_TRY(write_buffer(fd, {good, block.end}));
      bad.end = good;
    }
  }
  if (bad.begin < bad.end) add_unreadable(bad);
  return {};
}

bool FileRestorer::try_read(FileReader& source, ByteRange range) {
  const auto length = static_cast<std::size_t>(range.end - range.begin);
  auto got = source.read(range.begin, std::span(buffer_).first(length));
  if (got && *got == length) return true;
  if (unreadable_.reason.empty())
    unreadable_.reason = got ? "it ends too early" : got.error().message();
  return false;
}

Result<void> FileRestorer::write_buffer(int fd, ByteRange range) {
  const auto length = static_cast<std::size_t>(range.end - range.begin);
  return write_all(fd, std::span(buffer_).first(length), range.begin);
}

Result<void> FileRestorer::write_zeros(int fd, ByteRange range) {
  std::fill(buffer_.begin(), buffer_.end(), std::byte{0});
  for (std::uint64_t at = range.begin; at < range.end;) {
    const ByteRange piece{at, std::min(range.end, at + kReadBytes)};
    VARVE_TRY(write_buffer(fd, piece));
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
