// SPDX-License-Identifier: Apache-2.0
// Decompresses what xz made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <lzma.h>

#include "transfer/decompressor.h"
#include "transfer/liblzma.h"
#include "varve/result.h"

namespace varve::transfer {

/// Decompresses the streams of an .xz file in bounded memory. libarchive would give a decoder 1
/// GiB, as much as the headers of the file name.
class XzStream : public Decompressor {
 public:
  /// Returns true if the data begin as an .xz file.
  [[nodiscard]] static bool begins(std::span<const std::byte> data);
  /// Errors: kUnsupported without liblzma; kIo without memory.
  [[nodiscard]] static Result<std::unique_ptr<XzStream>> open();
  ~XzStream() override;
  XzStream(const XzStream&) = delete;
  XzStream& operator=(const XzStream&) = delete;

  /// Errors: also kTooLarge for data that take more than kDecoderBytesMax to be decompressed.
  [[nodiscard]] Result<std::span<const std::byte>> next(const Refill& refill) override;

 private:
  explicit XzStream(const Liblzma& library);
  [[nodiscard]] Error failure(lzma_ret status) const;

  const Liblzma& library_;
  lzma_stream stream_ = LZMA_STREAM_INIT;
  const std::unique_ptr<std::byte[]> out_;
  bool is_complete_ = false;  // The input has ended.
  bool has_ended_ = false;
};

}  // namespace varve::transfer
