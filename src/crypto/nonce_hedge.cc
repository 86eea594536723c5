// SPDX-License-Identifier: Apache-2.0
#include "crypto/nonce_hedge.h"

#include <algorithm>
#include <cstdint>

#include "base/coding.h"
#include "base/random_bytes.h"

namespace varve::crypto {

namespace {

// The uses of the codes. docs/ENCRYPTION.md has the same numbers.
enum class HedgeUse : std::uint8_t { kNonce = 0, kSalt = 1 };

// The random bytes have a fixed length per use, and the text contains the length of the place, so
// different inputs never give the same text.
Mac hedge(const Hmac& hmac, HedgeUse use, std::span<const std::byte> random,
          std::span<const std::byte> place, std::span<const std::byte> content) {
  std::array<std::byte, 1 + sizeof(std::uint64_t)> front{static_cast<std::byte>(use)};
  base::store_le(front.data() + 1, std::uint64_t{place.size()});
  return hmac.of({front, random, place, content});
}

}  // namespace

Result<NonceHedge> NonceHedge::make(const SecretKey& master, std::string_view repository_id,
                                    Cipher cipher) {
  const auto id = base::as_bytes(repository_id);
  VARVE_TRY_ASSIGN(auto nonces, derive_key(master, id, "varve nonces"));
  VARVE_TRY_ASSIGN(auto digests, derive_key(master, id, "varve digests"));
  return NonceHedge(Hmac(std::move(nonces)), Aead(cipher, std::move(digests)));
}

Nonce NonceHedge::nonce(const NonceSeed& seed, std::span<const std::byte> associated,
                        std::span<const std::byte> text) const {
  // The digest has a fixed length, and is secret: only the digest's code is stored.
  const auto mac = hedge(hmac_, HedgeUse::kNonce, seed, associated, digests_.secret_digest(text));
  Nonce made{};
  std::copy_n(mac.begin(), made.size(), made.begin());
  return made;
}

Result<Salt> NonceHedge::new_salt(std::span<const std::byte> place,
                                  std::span<const std::byte> content) const {
  VARVE_TRY_ASSIGN(const auto random, base::random_bytes<kSaltBytes>());
  return hedge(hmac_, HedgeUse::kSalt, random, place, content);
}

}  // namespace varve::crypto
