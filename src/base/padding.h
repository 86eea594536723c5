// SPDX-License-Identifier: Apache-2.0
// Padded lengths, to hide true lengths.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace varve::base {

/// Returns `bytes` rounded up by Padmé (Nikitin et al., PETS 2019), and to a multiple of `step`, a
/// power of two. Adds at most 12 %, 3 % from 64 KiB on, and less than a step.
[[nodiscard]] constexpr std::uint64_t padme(std::uint64_t bytes, std::uint64_t step) {
  if (bytes < 2) return (bytes + step - 1) & ~(step - 1);
  const auto e = static_cast<unsigned>(std::bit_width(bytes)) - 1;
  const auto digits = static_cast<unsigned>(std::bit_width(e));
  const std::uint64_t grain = std::max(step, std::uint64_t{1} << (e - std::min(e, digits)));
  return (bytes + grain - 1) & ~(grain - 1);
}

/// Returns the padded length of a sealed value of the catalog: at least one byte more.
[[nodiscard]] constexpr std::uint64_t padded_value_bytes(std::uint64_t bytes) {
  constexpr std::uint64_t kShort = 256;
  return padme(bytes + 1, bytes < kShort ? 32 : kShort);
}

/// Returns the same for a value of a few numbers, nearly always less than 16 bytes.
[[nodiscard]] constexpr std::uint64_t padded_numbers_bytes(std::uint64_t bytes) {
  constexpr std::uint64_t kNumbers = 16;
  return bytes < kNumbers ? kNumbers : padded_value_bytes(bytes);
}

/// Returns the padded length of a file written once; the padding is zeros. `append_unit` is the
/// file's unit: 1 for a plain file, which has no padding.
[[nodiscard]] constexpr std::uint64_t padded_file_bytes(std::uint64_t bytes,
                                                        std::uint64_t append_unit) {
  return append_unit == 1 ? bytes : padme(bytes, append_unit);
}

}  // namespace varve::base
