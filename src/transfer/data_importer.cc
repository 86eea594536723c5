// SPDX-License-Identifier: Apache-2.0
#include "transfer/data_importer.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "transfer/transfer_error.h"

namespace varve::transfer {

namespace {
constexpr std::size_t kWriteBytes = 1U << 20;

Error no_end(const std::string& reason) {
  return {
      ErrorCode::kInvalid,
      "the file states a size of 0 but has content, and " + reason +
          "; leave the file out with --exclude, or store the output of a program that reads it"};
}
}  // namespace

DataImporter::DataImporter(VersionWriter& version, VersionErrors& errors, Advance advance,
                           std::uint64_t unsized_bytes_max)
    : version_(version),
      errors_(errors),
      advance_(std::move(advance)),
      unsized_bytes_max_(unsized_bytes_max),
      buffer_(kWriteBytes) {}

/// Stores a file's data. Never reads past the size seen first, so a growing file ends too.
Result<void> DataImporter::store(int fd, const struct stat& status, Ino ino) {
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size == 0) return store_unsized(fd, ino);
  VARVE_TRY_ASSIGN(const auto file, errors_.checked(version_.open(ino, true)));
  // Only a file with fewer blocks than bytes can have holes.
  const bool may_have_holes = static_cast<std::uint64_t>(status.st_blocks) * 512 < size;
  std::uint64_t size_now = size;
  for (std::uint64_t offset = 0; offset < size_now;) {
    std::uint64_t end = size_now;
    if (may_have_holes) {
      const off_t data = ::lseek(fd, static_cast<off_t>(offset), SEEK_DATA);
      if (data < 0 && errno == ENXIO) break;  // The rest is a hole.
      if (data >= 0) {
        offset = static_cast<std::uint64_t>(data);
        const off_t hole = ::lseek(fd, data, SEEK_HOLE);
        if (hole > data) end = std::min(size_now, static_cast<std::uint64_t>(hole));
      }
    }
    if (offset >= end) break;
    const std::uint64_t wanted = end;
    VARVE_TRY(store_range(fd, *file, offset, end));
    if (end < wanted) size_now = end;  // The file was truncated meanwhile.
    offset = end;
  }
  VARVE_TRY(errors_.checked(file->flush()));
  if (may_have_holes) {
    AttributeChange change;
    change.size = size_now;
    VARVE_TRY(errors_.checked(version_.set_attributes(ino, change)));
  }
  return {};
}

/// Stores the data of a file with a size of 0. An empty file costs one read.
Result<void> DataImporter::store_unsized(int fd, Ino ino) {
  std::unique_ptr<OpenFile> file;
  for (std::uint64_t at = 0;;) {
    // Files without a size may refuse pread(2).
    const ssize_t n = ::read(fd, buffer_.data(), buffer_.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return no_end("a read waits for more, as a read of a pipe does");
    if (n < 0) return system_error("read", errno);
    if (n == 0) break;
    const auto got = static_cast<std::size_t>(n);
    if (got > unsized_bytes_max_ - at) {
      return no_end("has no end within " + std::to_string(unsized_bytes_max_ >> 20) + " MiB");
    }
    if (!file) {
      VARVE_TRY_ASSIGN(file, errors_.checked(version_.open(ino, true)));
    }
    VARVE_TRY(errors_.checked(file->write(at, std::span<const std::byte>(buffer_).first(got))));
    at += got;
    if (!advance_(got)) return Error(ErrorCode::kInterrupted, "interrupted");
  }
  return file ? errors_.checked(file->flush()) : Result<void>();
}

/// Stores [begin, end). If the file ends earlier, sets `end` to its end.
Result<void> DataImporter::store_range(int fd, OpenFile& file, std::uint64_t begin,
                                       std::uint64_t& end) {
  while (begin < end) {
    const std::size_t length = std::min<std::uint64_t>(kWriteBytes, end - begin);
    const ssize_t n = ::pread(fd, buffer_.data(), length, static_cast<off_t>(begin));
    if (n < 0) {
      if (errno == EINTR) continue;
      return system_error("read", errno);
    }
    if (n == 0) {
      end = begin;
      return {};
    }
    const auto got = static_cast<std::size_t>(n);
    VARVE_TRY(errors_.checked(file.write(begin, std::span<const std::byte>(buffer_).first(got))));
    begin += got;
    if (!advance_(got)) return Error(ErrorCode::kInterrupted, "interrupted");
  }
  return {};
}

}  // namespace varve::transfer
