// SPDX-License-Identifier: Apache-2.0
// A cipher that creates its nonces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "crypto/aead.h"
#include "crypto/nonce_hedge.h"
#include "varve/result.h"

namespace varve::crypto {

/// Number of texts reserved for changing to another key. Without the reserve, a version whose
/// overlay has reached the limit could not be sealed, and a catalog could not be opened.
inline constexpr std::uint64_t kSpareTexts = std::uint64_t{1} << 20;
/// Number of texts after which a key encrypts no more. With kSpareTexts, the sum is the 2^32 texts
/// permitted by NIST SP 800-38D, 8.3.
inline constexpr std::uint64_t kTextsMax = (std::uint64_t{1} << 32) - kSpareTexts;

/// Seals texts under one key with nonces of NonceHedge. Two different texts, or texts with
/// different associated data, have different nonces even if the random bytes repeat. The caller
/// counts the texts of a key, and stops using the key at kTextsMax. Immutable and thread-safe, also
/// in the child of a fork.
class HedgedAead {
 public:
  HedgedAead(Aead aead, NonceHedge hedge) : aead_(std::move(aead)), hedge_(std::move(hedge)) {}

  /// The bytes stored with a sealed text.
  struct Seal {
    Nonce nonce{};
    Tag tag{};
  };

  /// Encrypts `text` in place. The tag also covers `associated`. `seed` is fresh random bytes.
  [[nodiscard]] Seal seal(const NonceSeed& seed, std::span<const std::byte> associated,
                          std::span<std::byte> text) const {
    const auto nonce = hedge_.nonce(seed, associated, text);
    return {nonce, aead_.seal(nonce, associated, text)};
  }
  /// Seals as above, with internally drawn random bytes. Errors: kIo without random bytes; `text`
  /// is then unchanged.
  [[nodiscard]] Result<Seal> seal(std::span<const std::byte> associated,
                                  std::span<std::byte> text) const;

  /// Decrypts `text` in place. Returns false, and fills `text` with zeros, unless a call of seal()
  /// made `seal` and `text` with the same associated data.
  [[nodiscard]] bool open(const Seal& seal, std::span<const std::byte> associated,
                          std::span<std::byte> text) const {
    return aead_.open(seal.nonce, associated, text, seal.tag);
  }
  /// Decrypts as open() does, from `sealed` to `out` of the same length. The two spans may not
  /// overlap.
  [[nodiscard]] bool open(const Seal& seal, std::span<const std::byte> associated,
                          std::span<const std::byte> sealed, std::span<std::byte> out) const {
    return aead_.open(seal.nonce, associated, sealed, seal.tag, out);
  }

 private:
  Aead aead_;
  NonceHedge hedge_;
};

}  // namespace varve::crypto
