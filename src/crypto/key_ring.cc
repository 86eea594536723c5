// SPDX-License-Identifier: Apache-2.0
#include "crypto/key_ring.h"

#include "base/assert.h"

namespace varve::crypto {

namespace {

// The info of each purpose's derivation, by purpose. FORMAT.md has the same words, and the words of
// NonceHedge.
constexpr std::array<std::string_view, 9> kInfos = {
    "varve containers", "varve catalog", "varve overlay", "varve names", "varve files",
    "varve staging",    "varve slots",   "varve chunker", "varve heads"};
constexpr std::string_view kSaltedInfo = "varve salted";

}  // namespace

Result<std::shared_ptr<const KeyRing>> KeyRing::make(SecretKey master, std::string repository_id,
                                                     Cipher cipher) {
  std::shared_ptr<KeyRing> ring(new KeyRing(std::move(master), std::move(repository_id), cipher));
  // The id is the salt, so two repositories sharing a master key derive different keys.
  const auto salt = std::as_bytes(std::span(ring->repository_id_));
  for (const auto info : kInfos) {
    VARVE_TRY_ASSIGN(auto key, derive_key(ring->master_, salt, info));
    ring->keys_.push_back(std::move(key));
  }
  ring->names_.emplace(ring->key(Purpose::kNames));
  VARVE_TRY_ASSIGN(auto nonces, NonceHedge::make(ring->master_, ring->repository_id_, cipher));
  ring->nonces_.emplace(std::move(nonces));
  return std::shared_ptr<const KeyRing>(std::move(ring));
}

const SecretKey& KeyRing::key(Purpose purpose) const {
  const auto index = static_cast<std::size_t>(purpose);
  VARVE_ASSERT(index < keys_.size());
  return keys_[index];
}

Result<HedgedAead> KeyRing::salted(Purpose purpose, const Salt& salt) const {
  VARVE_ASSERT(purpose != Purpose::kContainers);
  VARVE_TRY_ASSIGN(auto derived, derive_key(key(purpose), salt, kSaltedInfo));
  return hedged(std::move(derived));
}

Result<Aead> KeyRing::of_container(const Salt& salt) const {
  VARVE_TRY_ASSIGN(auto derived, derive_key(key(Purpose::kContainers), salt, kSaltedInfo));
  return Aead(cipher_, std::move(derived));
}

HedgedAead KeyRing::hedged(SecretKey key) const {
  return {Aead(cipher_, std::move(key)), *nonces_};
}

}  // namespace varve::crypto
