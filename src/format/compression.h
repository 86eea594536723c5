// SPDX-License-Identifier: Apache-2.0
// The registry of compression methods. To add a method, add its Codec to varve/options.h and its
// row to the table in compression.cc; names, help, checks and all decoders follow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "varve/options.h"
#include "varve/result.h"

namespace varve::format {

/// A method and its level. The level is 0 for a method without levels.
struct Compression {
  Codec codec = Codec::kNone;
  int level = 0;
  bool operator==(const Compression&) const = default;
};

/// A row of the table of methods.
struct CompressionMethod {
  Codec codec = Codec::kNone;
  std::string_view name;
  int level_min = 0;  ///< Both bounds are 0 for a method without levels.
  int level_max = 0;
  int level_default = 0;
  std::string_view help;
  /// Compresses `raw` to the front of `out` and returns the length. `prefix`: bytes that the
  /// decompressor has, too, and that `raw` may repeat; empty for none. Returns 0 if `out` is too
  /// short, or without memory. Null if the method stores the raw bytes. Thread-safe.
  std::size_t (*compress)(std::span<const std::byte> raw, std::span<const std::byte> prefix,
                          int level, std::span<std::byte> out) = nullptr;
  /// Fills `out` with the raw bytes. `prefix`: the bytes with which they were compressed. Null if
  /// the method stores the raw bytes. Thread-safe. Errors: kCorrupt unless the bytes decompress to
  /// exactly out.size() bytes; kIo without memory.
  Result<void> (*decompress)(std::span<const std::byte> stored, std::span<const std::byte> prefix,
                             std::span<std::byte> out) = nullptr;
};

/// Returns the table, in the order of the codecs.
[[nodiscard]] std::span<const CompressionMethod> compression_methods();

/// Returns the row of a codec as stored on disk; null for a codec unknown to this build.
[[nodiscard]] const CompressionMethod* find_compression(std::uint32_t codec);

/// Parses the name of a method and its optional level, such as zstd:19 or none.
/// Errors: kUnsupported for an unknown name; kInvalid for a level outside the method's range.
[[nodiscard]] Result<Compression> parse_compression(std::string_view text);

/// Returns the text form of a compression for parse_compression(), with the level.
[[nodiscard]] std::string compression_text(const Compression& compression);

/// Checks that the method exists and has the level. Ignores the level of a method without levels.
/// Errors: kUnsupported, kInvalid, with the allowed values.
[[nodiscard]] Result<void> check_compression(const Compression& compression);

/// Returns the compression chosen by a repository's parameters.
[[nodiscard]] Compression compression_of(const RepositoryParameters& parameters);

}  // namespace varve::format
