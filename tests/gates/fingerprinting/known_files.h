// SPDX-License-Identifier: Apache-2.0
// Files that a victim may have: several kinds of data, the same from the same seed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace varve::fingerprinting {

enum class Kind : std::uint8_t {
  kMedia,    ///< Bytes that do not compress.
  kText,     ///< Words of a large vocabulary, the frequent ones more often.
  kRecords,  ///< Rows of a table: counters, fields of few values, zeros.
  kImage,    ///< Blocks that repeat, at places of their own, and zeros: as on a virtual disk.
};
inline constexpr std::array kKinds{Kind::kMedia, Kind::kText, Kind::kRecords, Kind::kImage};

[[nodiscard]] std::string_view name_of(Kind kind);

/// Returns a file. `mix` from 0 to 1 is the share of the bytes, in pages, that do not compress,
/// beside those that the kind has.
[[nodiscard]] std::string make_file(Kind kind, std::size_t bytes, std::uint64_t seed,
                                    double mix = 0);

}  // namespace varve::fingerprinting
