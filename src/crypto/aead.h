// SPDX-License-Identifier: Apache-2.0
// Authenticated encryption with associated data, and key derivation: by OpenSSL, and AES-256-GCM by
// libIPSec_MB if installed (crypto/gcm_library.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "crypto/authentic.h"
#include "crypto/secret_key.h"

namespace varve::crypto {

/// The ciphers of a repository. The values are stored.
enum class Cipher : std::uint8_t {
  kAes256Gcm = 1,         ///< NIST SP 800-38D.
  kChaCha20Poly1305 = 2,  ///< RFC 8439.
};

inline constexpr std::size_t kNonceBytes = 12;
inline constexpr std::size_t kTagBytes = 16;
using Nonce = std::array<std::byte, kNonceBytes>;
using Tag = AuthenticationCode<kTagBytes>;

/// Returns the nonce that holds `number` as a little-endian integer.
[[nodiscard]] Nonce nonce_of(std::uint64_t number);

/// Seals texts with the caller's nonces, and opens texts, under one key. Meant for counted nonces
/// under a fresh key; HedgedAead seals all other texts. Copies share the key and the key's expanded
/// form: the form of libIPSec_MB, or a few contexts of OpenSSL. Destroying the last copy wipes
/// both. Immutable and thread-safe, also in the child of a fork.
class Aead {
 public:
  Aead(Cipher cipher, SecretKey key);

  /// Encrypts `text` in place, and returns the tag of `text` and `associated`. No two texts may
  /// have the same nonce under the same key.
  [[nodiscard]] Tag seal(const Nonce& nonce, std::span<const std::byte> associated,
                         std::span<std::byte> text) const;
  /// Decrypts `text` in place. Returns false, and fills `text` with zeros, unless seal() made
  /// `text` and `tag` with the same key, nonce and associated data.
  [[nodiscard]] bool open(const Nonce& nonce, std::span<const std::byte> associated,
                          std::span<std::byte> text, const Tag& tag) const;
  /// Decrypts as open() does, from `sealed` to `out` of the same length. The two spans may not
  /// overlap.
  [[nodiscard]] bool open(const Nonce& nonce, std::span<const std::byte> associated,
                          std::span<const std::byte> sealed, const Tag& tag,
                          std::span<std::byte> out) const;
  /// Returns a digest of `text`: different texts have different digests, but for a chance of 2^-80,
  /// as long as no digest is known to an attacker. The key must seal nothing. The digest is the tag
  /// of an empty text with the nonce 0, a universal hash, which is several times as fast as
  /// SHA-256.
  [[nodiscard]] Tag secret_digest(std::span<const std::byte> text) const;
  /// Returns whether seal() made `sealed` from zeros with the same key and nonce. The associated
  /// data does not matter. Unlike open(), needs no tag: any other byte opens to a different text.
  [[nodiscard]] bool is_sealed_zeros(const Nonce& nonce, std::span<const std::byte> sealed) const;

 private:
  struct Keyed;
  std::shared_ptr<Keyed> keyed_;
};

/// Derives a key from another key by HKDF-SHA-256 (RFC 5869) with `salt` and `info`.
/// Errors: kIo without memory.
[[nodiscard]] Result<SecretKey> derive_key(const SecretKey& key, std::span<const std::byte> salt,
                                           std::string_view info);

/// Derives a key as above, from secret bytes of any length.
[[nodiscard]] Result<SecretKey> derive_key(std::span<const std::byte> secret,
                                           std::span<const std::byte> salt, std::string_view info);

/// Returns the faster cipher on this processor, by measuring both.
[[nodiscard]] Cipher faster_cipher();

}  // namespace varve::crypto
