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

/// Bytes of one part of an archive at most, compressed or not.
inline constexpr std::size_t kArchivePartBytes = std::size_t{1} << 20;

/// Limit for the memory of one decoder. xz and zstd need 65 and 128 MiB for the largest data that
/// they make without an option for larger ones.
inline constexpr std::size_t kDecoderBytesMax = std::size_t{129} << 20;

/// Decompresses a stream. Not thread-safe.
class Decompressor {
 public:
  virtual ~Decompressor() = default;

  /// Returns the next part of the compressed data, empty at its end. Lifetime: until the next call.
  using Refill = std::function<Result<std::span<const std::byte>>()>;
  /// Returns the next part of the data; empty at the end. Lifetime: until the next call.
  /// Errors: kInvalid if the stream is damaged or truncated; those of `refill`.
  [[nodiscard]] virtual Result<std::span<const std::byte>> next(const Refill& refill) = 0;
};

/// Decompresses a gzip stream, one member or several, and compares the checksum and length of each:
/// libarchive does not.
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

/// Decompresses what bzip2, lzma, zstd or compress made, by libarchive. Other data come out as they
/// are. The memory is bounded: libarchive takes data of lzma with dictionaries of up to 128 MiB
/// only, and libzstd windows of up to 128 MiB.
class FilterStream : public Decompressor {
 public:
  /// Reads the beginning of the data to know what made them.
  /// Errors: kIo without memory; kInvalid, also for data that were compressed twice, which would
  /// take a decoder for each time; those of `refill`.
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
