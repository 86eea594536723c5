// SPDX-License-Identifier: Apache-2.0
#include "format/compression.h"

#include <fmt/core.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <memory>

namespace varve::format {

namespace {

Error damaged(const std::string& what) { return {ErrorCode::kCorrupt, "frame: " + what}; }

// ---- zstd ----

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

// Creating a context costs as much as compressing a small frame, so each thread keeps a context. No
// state is carried from one frame to the next.
ZSTD_CCtx* compressor_of_this_thread() {
  static thread_local const std::unique_ptr<ZSTD_CCtx, FreeContext> context{ZSTD_createCCtx()};
  return context.get();
}

ZSTD_DCtx* decompressor_of_this_thread() {
  static thread_local const std::unique_ptr<ZSTD_DCtx, FreeContext> context{ZSTD_createDCtx()};
  return context.get();
}

// Compresses with a window that reaches from the last raw byte back to the first byte of the
// prefix.
std::size_t compress_zstd_with(ZSTD_CCtx* context, std::span<const std::byte> raw,
                               std::span<const std::byte> prefix, int level,
                               std::span<std::byte> out) {
  const auto window = static_cast<int>(std::bit_width(prefix.size() + raw.size()));
  const bool is_set =
      ZSTD_isError(ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters)) == 0 &&
      ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level)) == 0 &&
      ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, std::max(window, 10))) == 0 &&
      ZSTD_isError(ZSTD_CCtx_refPrefix(context, prefix.data(), prefix.size())) == 0;
  if (!is_set) return 0;
  const std::size_t n = ZSTD_compress2(context, out.data(), out.size(), raw.data(), raw.size());
  return ZSTD_isError(n) != 0 ? 0 : n;
}

std::size_t compress_zstd(std::span<const std::byte> raw, std::span<const std::byte> prefix,
                          int level, std::span<std::byte> out) {
  ZSTD_CCtx* const context = compressor_of_this_thread();
  if (context == nullptr) return 0;
  if (!prefix.empty()) return compress_zstd_with(context, raw, prefix, level, out);
  const std::size_t n =
      ZSTD_compressCCtx(context, out.data(), out.size(), raw.data(), raw.size(), level);
  return ZSTD_isError(n) != 0 ? 0 : n;
}

Result<void> decompress_zstd(std::span<const std::byte> stored, std::span<const std::byte> prefix,
                             std::span<std::byte> out) {
  ZSTD_DCtx* const context = decompressor_of_this_thread();
  if (context == nullptr || (!prefix.empty() && ZSTD_isError(ZSTD_DCtx_refPrefix(
                                                    context, prefix.data(), prefix.size())) != 0)) {
    return Error(ErrorCode::kIo, "frame: not enough memory to decompress it");
  }
  const std::size_t n =
      ZSTD_decompressDCtx(context, out.data(), out.size(), stored.data(), stored.size());
  if (ZSTD_isError(n) != 0) return damaged(std::string("zstd says: ") + ZSTD_getErrorName(n));
  if (n != out.size()) return damaged("it decompresses to another length than its entry says");
  return {};
}

// ---- The table ----

constexpr std::array kMethods{
    CompressionMethod{Codec::kNone, "none", 0, 0, 0, "none", nullptr, nullptr},
    CompressionMethod{Codec::kZstd, "zstd", 1, 19, 1,
                      "zstd or zstd:LEVEL, LEVEL from 1 (fast, default) to 19 (small)",
                      compress_zstd, decompress_zstd},
};

const CompressionMethod* find_by_name(std::string_view name) {
  for (const auto& method : kMethods) {
    if (method.name == name) return &method;
  }
  return nullptr;
}

std::string known_names() {
  std::string names;
  for (const auto& method : kMethods) {
    if (!names.empty()) names += ", ";
    names += method.name;
  }
  return names;
}

Error bad_level(const CompressionMethod& method, std::string_view given) {
  return {
      ErrorCode::kInvalid,
      method.level_max == 0
          ? fmt::format("the compression {} has no levels, but `{}` is given", method.name, given)
          : fmt::format("the level of {} is a number from {} to {}, not `{}`", method.name,
                        method.level_min, method.level_max, given)};
}

}  // namespace

std::span<const CompressionMethod> compression_methods() { return kMethods; }

const CompressionMethod* find_compression(std::uint32_t codec) {
  for (const auto& method : kMethods) {
    if (static_cast<std::uint32_t>(method.codec) == codec) return &method;
  }
  return nullptr;
}

Result<Compression> parse_compression(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const CompressionMethod* const method = find_by_name(name);
  if (method == nullptr) {
    return Error(ErrorCode::kUnsupported,
                 fmt::format("unknown codec `{}`: {} are known", name, known_names()));
  }
  Compression compression{method->codec, method->level_default};
  if (colon == std::string_view::npos) return compression;
  const std::string_view level = text.substr(colon + 1);
  const char* const end = level.data() + level.size();
  const auto [stop, failure] = std::from_chars(level.data(), end, compression.level);
  if (failure != std::errc() || stop != end || method->level_max == 0 ||
      compression.level < method->level_min || compression.level > method->level_max) {
    return bad_level(*method, level);
  }
  return compression;
}

std::string compression_text(const Compression& compression) {
  const auto* const method = find_compression(static_cast<std::uint32_t>(compression.codec));
  if (method == nullptr) return "unknown";
  if (method->level_max == 0) return std::string(method->name);
  return fmt::format("{}:{}", method->name, compression.level);
}

Result<void> check_compression(const Compression& compression) {
  const auto number = static_cast<std::uint32_t>(compression.codec);
  const auto* const method = find_compression(number);
  if (method == nullptr) {
    return Error(ErrorCode::kUnsupported,
                 fmt::format("unknown codec {}: {} are known", number, known_names()));
  }
  if (method->level_max == 0) return {};
  if (compression.level < method->level_min || compression.level > method->level_max) {
    return bad_level(*method, std::to_string(compression.level));
  }
  return {};
}

Compression compression_of(const RepositoryParameters& parameters) {
  return {parameters.codec, parameters.zstd_level};
}

}  // namespace varve::format
