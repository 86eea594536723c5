// SPDX-License-Identifier: Apache-2.0
// Nonces and salts that differ for different texts even if the random bytes repeat.
// docs/ENCRYPTION.md, "Nonces".
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

#include "crypto/aead.h"
#include "crypto/hmac.h"
#include "crypto/secret_key.h"
#include "varve/result.h"

namespace varve::crypto {

inline constexpr std::size_t kSaltBytes = 32;
using Salt = std::array<std::byte, kSaltBytes>;
/// The random bytes of one nonce.
using NonceSeed = std::array<std::byte, 16>;

/// Derives nonces and salts from random bytes and the protected data, by an HMAC under a separate
/// key. After a virtual machine was reset to a snapshot, the random bytes may repeat: two different
/// texts still have different nonces. Copies share the key. Immutable and thread-safe.
class NonceHedge {
 public:
  /// Returns the hedge of a repository, whose id is the text in the superblock. Errors: kIo without
  /// memory.
  [[nodiscard]] static Result<NonceHedge> make(const SecretKey& master,
                                               std::string_view repository_id, Cipher cipher);

  /// Returns the nonce of a text with its associated data.
  [[nodiscard]] Nonce nonce(const NonceSeed& seed, std::span<const std::byte> associated,
                            std::span<const std::byte> text) const;
  /// Returns a salt for a key used at `place` only. If the nonces under the key are counted,
  /// `content` must determine all texts sealed by the key; otherwise `content` is empty.
  /// Errors: kIo without random bytes.
  [[nodiscard]] Result<Salt> new_salt(std::span<const std::byte> place,
                                      std::span<const std::byte> content = {}) const;

 private:
  NonceHedge(Hmac hmac, Aead digests) : hmac_(std::move(hmac)), digests_(std::move(digests)) {}
  Hmac hmac_;
  Aead digests_;  // Seals nothing.
};

}  // namespace varve::crypto
