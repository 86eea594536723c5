// SPDX-License-Identifier: Apache-2.0
// The checksum behind each value of an environment, and LMDB's errors.
#pragma once

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

/// Returns the error for a code of LMDB. `what`: the failed operation.
[[nodiscard]] Error error_from_lmdb(int rc, const char* what);

}  // namespace varve::meta
