// SPDX-License-Identifier: Apache-2.0
// Secret bytes in memory that is locked, left out of core dumps, and wiped.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include "varve/result.h"

namespace varve::crypto {

inline constexpr std::size_t kKeyBytes = 32;

/// A secret of kKeyBytes bytes, outside the ordinary heap. Its page is locked in memory and left
/// out of core dumps; the secret is wiped with the last copy of the key. Copies share the same
/// bytes. Immutable, and thread-safe.
class SecretKey {
 public:
  /// Returns a key of random bytes. Errors: kIo without random bytes or memory.
  [[nodiscard]] static Result<SecretKey> random();
  /// Returns a key with a copy of `bytes`. The caller wipes `bytes`. Errors: kIo without memory.
  [[nodiscard]] static Result<SecretKey> copy_of(std::span<const std::byte, kKeyBytes> bytes);

  [[nodiscard]] std::span<const std::byte, kKeyBytes> bytes() const;
  /// Compares in a time that does not depend on the bytes.
  [[nodiscard]] bool equals(const SecretKey& other) const;

 private:
  explicit SecretKey(std::shared_ptr<std::byte> bytes) : bytes_(std::move(bytes)) {}

  std::shared_ptr<std::byte> bytes_;
};

/// Overwrites bytes with zeros; the compiler does not remove the writes.
void wipe(std::span<std::byte> bytes);

}  // namespace varve::crypto
