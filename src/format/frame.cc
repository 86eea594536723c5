// SPDX-License-Identifier: Apache-2.0
#include <xxhash.h>
#include <zstd.h>

#include <algorithm>
#include <memory>
#include <string>

#include "base/assert.h"
#include "format/container.h"

namespace varve::format {

namespace {

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

// A compression context of zstd. Making it again for each frame costs as much as a small frame's
// compression, so every thread keeps one; it carries nothing from one frame to the next.
struct Compressor {
  std::unique_ptr<ZSTD_CCtx, FreeContext> context{ZSTD_createCCtx()};
  std::vector<std::byte> scratch = std::vector<std::byte>(kFrameRawBytesMax);
};

Compressor& compressor_of_this_thread() {
  static thread_local Compressor compressor;
  return compressor;
}

ZSTD_DCtx* decompressor_of_this_thread() {
  static thread_local const std::unique_ptr<ZSTD_DCtx, FreeContext> context{ZSTD_createDCtx()};
  return context.get();
}

Error damaged_frame(const std::string& what) { return {ErrorCode::kCorrupt, "frame: " + what}; }

}  // namespace

std::uint64_t checksum64(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

EncodedFrame compress_frame(std::span<const std::byte> raw, Codec codec, int level) {
  VARVE_ASSERT(raw.size() <= kFrameRawBytesMax);
  if (codec == Codec::kNone || raw.empty()) return {};
  auto& [context, scratch] = compressor_of_this_thread();
  // Out of memory: the frame is stored as it is.
  if (!context) return {};
  // zstd gives up as soon as the result would be longer than what is worth it.
  const std::size_t stored_bytes_max = raw.size() - std::max<std::size_t>(raw.size() / 32, 1);
  const std::size_t n = ZSTD_compressCCtx(context.get(), scratch.data(), stored_bytes_max,
                                          raw.data(), raw.size(), level);
  if (ZSTD_isError(n) != 0 || n == 0) return {};
  const auto stored = std::span(scratch).first(n);
  return {Codec::kZstd, {stored.begin(), stored.end()}};
}

Result<void> decode_frame(const FrameEntry& frame, std::span<const std::byte> stored,
                          std::span<std::byte> out) {
  VARVE_ASSERT(out.size() == frame.raw_bytes);
  if (stored.size() != frame.stored_bytes) return damaged_frame("its stored bytes are cut short");
  if (checksum64(stored) != frame.checksum) {
    return damaged_frame("its stored bytes do not match their checksum");
  }
  if (frame.codec == Codec::kNone) {
    if (stored.size() != out.size()) return damaged_frame("stored and raw length differ");
    std::copy(stored.begin(), stored.end(), out.begin());
    return {};
  }
  if (frame.codec != Codec::kZstd) return damaged_frame("unknown codec");
  ZSTD_DCtx* context = decompressor_of_this_thread();
  if (context == nullptr) {
    return Error(ErrorCode::kIo, "frame: not enough memory to decompress it");
  }
  const std::size_t n =
      ZSTD_decompressDCtx(context, out.data(), out.size(), stored.data(), stored.size());
  if (ZSTD_isError(n) != 0) return damaged_frame(std::string("zstd says: ") + ZSTD_getErrorName(n));
  if (n != out.size())
    return damaged_frame("it decompresses to another length than its entry says");
  return {};
}

}  // namespace varve::format
