// SPDX-License-Identifier: Apache-2.0
// Helpers that targets share: assertions that end the program, and corrected checksums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "base/checksum.h"
#include "base/coding.h"
#include "format/container.h"

namespace varve::fuzz {

/// The input of a target.
using Bytes = std::span<const std::byte>;

inline std::string_view text_of(Bytes input) {
  return {reinterpret_cast<const char*>(input.data()), input.size()};
}

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

inline void put64(std::string& bytes, std::size_t at, std::uint64_t value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

/// Returns the checksum of the bytes from `from` to `to`.
inline std::uint64_t sum(const std::string& bytes, std::size_t from, std::size_t to) {
  return base::checksum64(base::as_bytes(bytes).subspan(from, to - from));
}

}  // namespace varve::fuzz
