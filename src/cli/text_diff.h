// SPDX-License-Identifier: Apache-2.0
// Compares two texts line by line, for `varve web`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace varve::cli {

/// A line of a difference.
struct DiffLine {
  enum class Kind : char { kSame = ' ', kRemoved = '-', kAdded = '+', kGap = '@' };
  Kind kind = Kind::kSame;
  std::uint32_t before = 0;  ///< Number in the first text, from 1; 0 for an added line or a gap.
  std::uint32_t after = 0;   ///< Number in the second text, from 1; 0 for a removed line or a gap.
  std::string_view text;     ///< Without the newline.
};

/// The difference of two texts.
struct TextDiff {
  std::vector<DiffLine> lines;  ///< Changes with three lines around each; gaps between them.
  bool is_coarse = false;       ///< The texts differ too much: all between the equal ends counts.
};

/// Returns true if `text` looks like no text: it has a NUL byte.
[[nodiscard]] bool is_binary(std::string_view text);

/// Number of added and removed lines beyond which a difference is coarse.
inline constexpr std::size_t kEditsMax = 2000;

/// Compares two texts of at most 2^30 lines with the algorithm of Myers (1986). kEditsMax bounds
/// its memory (16 MiB) and time. Lifetime: the lines refer to the texts.
[[nodiscard]] TextDiff diff_texts(std::string_view before, std::string_view after);

}  // namespace varve::cli
