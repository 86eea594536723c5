// SPDX-License-Identifier: Apache-2.0
#include "transfer/decompressor.h"

#include <zlib.h>

#include <cerrno>
#include <limits>
#include <new>
#include <string>

#include "transfer/libarchive.h"

namespace varve::transfer {

GzipStream::GzipStream() : stream_(new z_stream_s()), out_(new std::byte[kArchivePartBytes]) {
  constexpr int kWindowOfGzip = 16 + MAX_WBITS;  // Other formats of zlib are errors.
  if (::inflateInit2(stream_.get(), kWindowOfGzip) != Z_OK) throw std::bad_alloc();
}

GzipStream::~GzipStream() { ::inflateEnd(stream_.get()); }

Result<std::span<const std::byte>> GzipStream::next(const Refill& refill) {
  static_assert(kArchivePartBytes <= std::numeric_limits<unsigned>::max());
  const Error damaged(ErrorCode::kInvalid, "the archive is damaged or truncated: its gzip data");
  stream_->next_out = reinterpret_cast<Bytef*>(out_.get());
  stream_->avail_out = kArchivePartBytes;
  while (stream_->avail_out == kArchivePartBytes) {
    if (stream_->avail_in == 0) {
      VARVE_TRY_ASSIGN(const auto more, refill());
      if (more.empty()) {
        if (is_inside_) return damaged;
        break;
      }
      stream_->next_in =
          const_cast<Bytef*>(reinterpret_cast<const Bytef*>(more.data()));  // zlib only reads.
      stream_->avail_in = static_cast<unsigned>(more.size());
    }
    if (!is_inside_) {
      ::inflateReset(stream_.get());
      is_inside_ = true;
    }
    const int status = ::inflate(stream_.get(), Z_NO_FLUSH);
    if (status == Z_STREAM_END) {
      is_inside_ = false;  // Another member may follow.
    } else if (status != Z_OK) {
      return damaged;
    }
  }
  return std::span<const std::byte>(out_.get(), kArchivePartBytes - stream_->avail_out);
}

FilterStream::~FilterStream() {
  if (handle_ != nullptr) libarchive().archive_read_free(handle_);
}

Result<std::unique_ptr<FilterStream>> FilterStream::open(const Refill& refill) {
  VARVE_TRY(load_libarchive());
  std::unique_ptr<FilterStream> stream(new FilterStream());
  stream->handle_ = libarchive().archive_read_new();
  if (stream->handle_ == nullptr) {
    return Error(ErrorCode::kIo, "no memory for reading the archive");
  }
  // Only filters of libraries: any other filter would run a program. Not the filters of gzip and
  // lz4, because both ignore the checksums, and not the filter of xz, because xz takes 1 GiB.
  libarchive().archive_read_support_filter_bzip2(stream->handle_);
  libarchive().archive_read_support_filter_lzma(stream->handle_);
  libarchive().archive_read_support_filter_zstd(stream->handle_);
  libarchive().archive_read_support_filter_compress(stream->handle_);
  // The data as a single member.
  libarchive().archive_read_support_format_raw(stream->handle_);
  libarchive().archive_read_support_format_empty(stream->handle_);
  libarchive().archive_read_set_read_callback(stream->handle_, &FilterStream::read_callback);
  libarchive().archive_read_set_callback_data(stream->handle_, stream.get());
  stream->refill_ = &refill;
  if (libarchive().archive_read_open1(stream->handle_) < ARCHIVE_WARN) return stream->failure();
  // The count includes the filter for uncompressed data.
  constexpr int kFiltersMax = 2;
  if (libarchive().archive_filter_count(stream->handle_) > kFiltersMax) {
    return Error(ErrorCode::kInvalid,
                 "the archive is compressed twice; decompress it once, and store the result");
  }
  return stream;
}

bool FilterStream::is_plain() const { return libarchive().archive_filter_count(handle_) <= 1; }

Result<std::span<const std::byte>> FilterStream::next(const Refill& refill) {
  refill_ = &refill;
  if (!has_begun_) {
    archive_entry* entry = nullptr;
    const int status = libarchive().archive_read_next_header(handle_, &entry);
    if (status == ARCHIVE_EOF) return std::span<const std::byte>();
    if (status < ARCHIVE_WARN) return failure();
    has_begun_ = true;
  }
  const void* bytes = nullptr;
  std::size_t size = 0;
  la_int64_t offset = 0;
  const int status = libarchive().archive_read_data_block(handle_, &bytes, &size, &offset);
  if (status == ARCHIVE_EOF) return std::span<const std::byte>();
  if (status != ARCHIVE_OK) return failure();
  return std::span(static_cast<const std::byte*>(bytes), size);
}

Error FilterStream::failure() const {
  if (read_error_) return *read_error_;
  const char* const reason = libarchive().archive_error_string(handle_);
  return {ErrorCode::kInvalid, std::string("the archive is damaged or truncated: ") +
                                   (reason == nullptr ? "its compressed data" : reason)};
}

ssize_t FilterStream::read_callback(archive* handle, void* self, const void** buffer) {
  auto& stream = *static_cast<FilterStream*>(self);
  const auto got = (*stream.refill_)();
  if (!got) {
    stream.read_error_ = got.error();
    libarchive().archive_set_error(handle, EIO, "%s", got.error().message().c_str());
    return ARCHIVE_FATAL;
  }
  *buffer = got->data();
  return static_cast<ssize_t>(got->size());
}

}  // namespace varve::transfer
