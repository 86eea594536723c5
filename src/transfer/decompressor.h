// SPDX-License-Identifier: Apache-2.0
// Decompresses archives.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "varve/result.h"

struct archive;
struct z_stream_s;

namespace varve::transfer {

/// Maximum number of bytes of a part of an archive, compressed or not.
inline constexpr std::size_t kArchivePartBytes = std::size_t{1} << 20;

/// Limit for the memory of a decoder. xz and zstd need 65 and 128 MiB for the largest data made
/// without an option for larger data.
inline constexpr std::size_t kDecoderBytesMax = std::size_t{129} << 20;

/// Decompresses a stream. Not thread-safe.
class Decompressor {
 public:
  virtual ~Decompressor() = default;

  /// Returns the next part of the compressed data, empty at the end of the data. Lifetime: until
  /// the next call.
  using Refill = std::function<Result<std::span<const std::byte>>()>;
  /// Returns the next part of the data; empty at the end. Lifetime: until the next call.
  /// Errors: kInvalid if the stream is damaged or truncated; the errors of `refill`.
  [[nodiscard]] virtual Result<std::span<const std::byte>> next(const Refill& refill) = 0;
};

/// Decompresses a gzip stream of any number of members, and compares the checksum and length of
/// each member: libarchive does not.
class GzipStream : public Decompressor {
 public:
  GzipStream();
  ~GzipStream() override;
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  [[nodiscard]] Result<std::span<const std::byte>> next(const Refill& refill) override;

 private:
  const std::unique_ptr<z_stream_s> stream_;
  const std::unique_ptr<std::byte[]> out_;
  bool is_inside_ = true;  // A member has begun and has not ended.
};

/// Decompresses data of bzip2, lzma, zstd or compress, by libarchive. Data in another format come
/// out unchanged. The memory is bounded: libarchive takes data of lzma with dictionaries of up to
/// 128 MiB only, and libzstd windows of up to 128 MiB.
class FilterStream : public Decompressor {
 public:
  /// Reads the beginning of the data to find the format.
  /// Errors: kIo without memory; kInvalid, also for data compressed twice, because each compression
  /// would take a decoder; the errors of `refill`.
  [[nodiscard]] static Result<std::unique_ptr<FilterStream>> open(const Refill& refill);
  ~FilterStream() override;
  FilterStream(const FilterStream&) = delete;
  FilterStream& operator=(const FilterStream&) = delete;

  /// Returns true if the data are not compressed.
  [[nodiscard]] bool is_plain() const;
  [[nodiscard]] Result<std::span<const std::byte>> next(const Refill& refill) override;

 private:
  FilterStream() = default;
  [[nodiscard]] Error failure() const;
  static ssize_t read_callback(archive* handle, void* self, const void** buffer);

  archive* handle_ = nullptr;
  const Refill* refill_ = nullptr;  // Of the present call.
  std::optional<Error> read_error_;
  bool has_begun_ = false;
};

}  // namespace varve::transfer
