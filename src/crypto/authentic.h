// SPDX-License-Identifier: Apache-2.0
// The only comparison of MACs, tags, commitments, keys and tokens.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "varve/result.h"

namespace varve::crypto {

/// Returns true if `given` has the bytes of `expected`. The time depends on the lengths alone. An
/// empty `expected` equals nothing: a value that could not be computed admits nobody.
[[nodiscard]] bool is_authentic(std::span<const std::byte> given,
                                std::span<const std::byte> expected);

/// As above, for a value whose computation can fail. A failed computation equals nothing.
template <typename Value>
[[nodiscard]] bool is_authentic(std::span<const std::byte> given, const Result<Value>& expected) {
  return expected.has_value() && is_authentic(given, std::span<const std::byte>(*expected));
}
template <typename Value>
[[nodiscard]] bool is_authentic(std::span<const std::byte> given,
                                const std::optional<Value>& expected) {
  return expected.has_value() && is_authentic(given, std::span<const std::byte>(*expected));
}

/// The bytes of a MAC or tag. The type has no operator==: is_authentic() compares the bytes.
template <std::size_t kBytes>
struct AuthenticationCode : std::array<std::byte, kBytes> {
  bool operator==(const AuthenticationCode&) const = delete;
};

}  // namespace varve::crypto
