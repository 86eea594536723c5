// SPDX-License-Identifier: Apache-2.0
// The checksum behind each value of an environment, and LMDB's errors.
#pragma once

#include <lmdb.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "varve/result.h"

namespace varve::meta {

inline constexpr std::size_t kValueChecksumBytes = 4;

/// Returns the checksum stored behind a value. The checksum covers the key, too.
[[nodiscard]] std::uint32_t value_checksum(std::string_view key, std::string_view value);

/// Returns a stored value without the checksum. Errors: kCorrupt if the checksum is wrong.
[[nodiscard]] Result<std::string_view> verified_value(std::string_view key,
                                                      std::string_view stored);

[[nodiscard]] inline MDB_val to_val(std::string_view s) {
  return {s.size(), const_cast<char*>(s.data())};
}
[[nodiscard]] inline std::string_view to_view(const MDB_val& v) {
  return {static_cast<const char*>(v.mv_data), v.mv_size};
}

/// Returns the error for a code of LMDB. `what`: the failed operation.
[[nodiscard]] Error error_from_lmdb(int rc, const char* what);

}  // namespace varve::meta
