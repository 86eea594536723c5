// SPDX-License-Identifier: Apache-2.0
#include "transfer/xz_stream.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string>

#ifndef VARVE_STATIC
#include "base/shared_library.h"
#endif

namespace varve::transfer {
namespace {

/// The functions of the library, and why the library cannot be used.
struct LoadedLzma {
  Liblzma functions;
  std::string fault;  // Empty: none.
};

LoadedLzma load_functions() {
  LoadedLzma loaded;
#ifdef VARVE_STATIC
#define VARVE_LINK(function) loaded.functions.function = &::function;
  VARVE_LIBLZMA_FUNCTIONS(VARVE_LINK)
#undef VARVE_LINK
#else
  // The soname has been the same since liblzma 5.0 (2010).
  base::SharedLibrary library("liblzma.so.5");
#define VARVE_FIND(function) library.find(#function, loaded.functions.function);
  VARVE_LIBLZMA_FUNCTIONS(VARVE_FIND)
#undef VARVE_FIND
  loaded.fault = library.fault();
#endif
  return loaded;
}

}  // namespace

Result<const Liblzma*> load_liblzma() {
  static const LoadedLzma loaded = load_functions();
  if (loaded.fault.empty()) return &loaded.functions;
  return Error(ErrorCode::kUnsupported,
               "archives that xz made need liblzma; install it (" + loaded.fault + ")");
}

bool XzStream::begins(std::span<const std::byte> data) {
  constexpr std::array kMagic{std::byte{0xfd}, std::byte{'7'}, std::byte{'z'},
                              std::byte{'X'},  std::byte{'Z'}, std::byte{0}};
  return data.size() >= kMagic.size() && std::ranges::equal(data.first(kMagic.size()), kMagic);
}

XzStream::XzStream(const Liblzma& library)
    : library_(library), out_(new std::byte[kArchivePartBytes]) {}

XzStream::~XzStream() { library_.lzma_end(&stream_); }

Result<std::unique_ptr<XzStream>> XzStream::open() {
  VARVE_TRY_ASSIGN(const auto* const library, load_liblzma());
  std::unique_ptr<XzStream> stream(new XzStream(*library));
  const lzma_ret status =
      library->lzma_stream_decoder(&stream->stream_, kDecoderBytesMax, LZMA_CONCATENATED);
  if (status != LZMA_OK) return stream->failure(status);
  return stream;
}

Error XzStream::failure(lzma_ret status) const {
  if (status == LZMA_MEM_ERROR) return {ErrorCode::kIo, "no memory for decompressing the archive"};
  if (status != LZMA_MEMLIMIT_ERROR) {
    return {ErrorCode::kInvalid, "the archive is damaged or truncated: its xz data"};
  }
  constexpr std::uint64_t kMib = std::uint64_t{1} << 20;
  return {
      ErrorCode::kTooLarge,
      fmt::format("the archive needs {} MiB of memory to be decompressed, and Varve uses {} MiB "
                  "at most. If you trust the archive, decompress it by `xz -dc ARCHIVE | varve "
                  "store --from-tar - ...`",
                  library_.lzma_memusage(&stream_) / kMib, kDecoderBytesMax / kMib)};
}

Result<std::span<const std::byte>> XzStream::next(const Refill& refill) {
  stream_.next_out = reinterpret_cast<std::uint8_t*>(out_.get());
  stream_.avail_out = kArchivePartBytes;
  while (stream_.avail_out == kArchivePartBytes && !has_ended_) {
    if (stream_.avail_in == 0 && !is_complete_) {
      VARVE_TRY_ASSIGN(const auto more, refill());
      is_complete_ = more.empty();
      stream_.next_in = reinterpret_cast<const std::uint8_t*>(more.data());
      stream_.avail_in = more.size();
    }
    const lzma_ret status = library_.lzma_code(&stream_, is_complete_ ? LZMA_FINISH : LZMA_RUN);
    if (status == LZMA_STREAM_END) {
      has_ended_ = true;
    } else if (status != LZMA_OK) {
      return failure(status);
    }
  }
  return std::span<const std::byte>(out_.get(), kArchivePartBytes - stream_.avail_out);
}

}  // namespace varve::transfer
