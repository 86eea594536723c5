// SPDX-License-Identifier: Apache-2.0
// Reads archives with libarchive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "transfer/decompressor.h"
#include "varve/result.h"

struct archive;
struct archive_entry;

namespace varve::transfer {

/// Reads from a descriptor that may be a pipe. Waits for data, but asks now and then whether to go
/// on. Returns the number of bytes; 0 at the end.
/// Errors: kInterrupted once `goes_on` returns false; kIo.
[[nodiscard]] Result<std::size_t> read_stream(int fd, std::span<std::byte> out,
                                              const std::function<bool()>& goes_on);

/// A tar, cpio or zip archive in a stream. A zip archive must be a regular file: types and modes of
/// members are at the end of the archive. Not thread-safe.
/// Errors of each function: kInvalid if the archive is damaged or truncated; kTooLarge if
/// decompression takes too much memory; the errors of read_stream().
class ArchiveInput {
 public:
  /// Lifetime: `fd` and `goes_on` must outlive the object. The object moves the descriptor's
  /// position.
  [[nodiscard]] static Result<std::unique_ptr<ArchiveInput>> open(
      int fd, const std::function<bool()>& goes_on);
  ~ArchiveInput();
  ArchiveInput(const ArchiveInput&) = delete;
  ArchiveInput& operator=(const ArchiveInput&) = delete;

  /// Returns the next member, or null at the end. Lifetime: until the next call.
  [[nodiscard]] Result<archive_entry*> next();
  /// Returns the name of the member, byte by byte as in the archive. Lifetime: until the next
  /// next().
  [[nodiscard]] const std::string& name() const { return name_; }
  /// Returns the warning of libarchive about the member; usually empty.
  [[nodiscard]] const std::string& warning() const { return warning_; }

  /// A part of the member's data. Lifetime: until the next call.
  struct Block {
    std::uint64_t offset = 0;
    std::span<const std::byte> bytes;
  };
  /// Returns the next part of the member's data; nullopt at the end.
  [[nodiscard]] Result<std::optional<Block>> next_block();

 private:
  ArchiveInput(int fd, const std::function<bool()>& goes_on);
  [[nodiscard]] Result<void> start();
  /// Chooses how to read the input: unchanged, decompressed, or, for a zip archive, at any offset.
  [[nodiscard]] Result<void> choose_input();
  [[nodiscard]] Error failure();
  /// Checks the headers of the tar member last read by libarchive.
  [[nodiscard]] Result<void> check_headers() const;
  /// Checks that the memory to decompress a member of a zip archive is bounded.
  [[nodiscard]] Result<void> check_method() const;
  /// Sets name_. Corrects the type of a member whose name libarchive altered.
  [[nodiscard]] Result<void> take_name(archive_entry* entry);
  /// Checks that an uncompressed tar ends with an end mark.
  [[nodiscard]] Result<void> check_end(std::int64_t before) const;
  /// Checks that no data follows the trailer of a cpio archive.
  [[nodiscard]] Result<void> check_cpio_end();
  /// Reads the next part of the input, compressed or not; empty at the end of the input.
  [[nodiscard]] Result<std::span<const std::byte>> read_input();
  /// Reads the next part of the data for libarchive: the input, or the decompressed input.
  [[nodiscard]] Result<std::span<const std::byte>> read_archive();
  static ssize_t read_callback(archive* handle, void* self, const void** buffer);
  static std::int64_t seek_callback(archive* handle, void* self, std::int64_t offset, int whence);

  const int fd_;
  const std::function<bool()>& goes_on_;
  std::unique_ptr<std::byte[]> buffer_;
  std::span<const std::byte> ahead_;            // Input read to find the format.
  std::unique_ptr<Decompressor> decompressor_;  // Null if the input is read unchanged.
  archive* handle_ = nullptr;
  std::optional<Error> read_error_;
  std::string seen_;           // The latest parts: all since the present headers began.
  std::size_t last_seen_ = 0;  // Bytes of the latest part.
  bool in_headers_ = false;    // libarchive reads the headers of a member.
  std::string warning_;
  std::string name_;
  std::optional<std::vector<std::string>> zip_names_;  // In the order of the members.
  std::size_t zip_members_ = 0;                        // Number of members returned by next().
  std::int64_t position_ = 0;                          // Offset of the next part for libarchive.
  std::int64_t data_end_ = 0;  // Offset behind the last nonzero byte of all parts so far.
  bool has_data_ = false;      // The present member may have more data.
};

}  // namespace varve::transfer
