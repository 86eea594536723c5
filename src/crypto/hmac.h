// SPDX-License-Identifier: Apache-2.0
// HMAC-SHA-256 (RFC 2104), by OpenSSL.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>

#include "crypto/authentic.h"
#include "crypto/secret_key.h"

namespace varve::crypto {

using Mac = AuthenticationCode<32>;

/// Computes HMAC-SHA-256 under a key. Copies share the key and the key's contexts. Immutable and
/// thread-safe.
class Hmac {
 public:
  explicit Hmac(SecretKey key);

  /// Returns the code of the text made of the consecutive parts.
  [[nodiscard]] Mac of(std::initializer_list<std::span<const std::byte>> parts) const;

 private:
  struct Keyed;
  std::shared_ptr<Keyed> keyed_;
};

/// Returns the HMAC-SHA-256 of a text. For many texts under one key, an Hmac is faster.
[[nodiscard]] Mac hmac_sha256(const SecretKey& key, std::span<const std::byte> text);

}  // namespace varve::crypto
