// SPDX-License-Identifier: Apache-2.0
#include "crypto/hmac.h"

#include <openssl/core_names.h>
#include <openssl/params.h>

#include <utility>

#include "base/assert.h"
#include "crypto/context_pool.h"
#include "crypto/evp.h"

namespace varve::crypto {

namespace {

EVP_MAC_CTX* new_context(const SecretKey& key) {
  static const std::unique_ptr<EVP_MAC, FreeEvp> hmac(EVP_MAC_fetch(nullptr, "HMAC", nullptr));
  VARVE_ASSERT(hmac != nullptr);
  auto* const context = EVP_MAC_CTX_new(hmac.get());
  std::array<char, 7> digest{"SHA256"};
  const std::array<OSSL_PARAM, 2> parameters{
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest.data(), 0),
      OSSL_PARAM_construct_end()};
  VARVE_ASSERT(context != nullptr &&
               EVP_MAC_init(context, evp_bytes(key.bytes()), kKeyBytes, parameters.data()) == 1);
  return context;
}

}  // namespace

struct Hmac::Keyed {
  explicit Keyed(SecretKey of) : key(std::move(of)) {}
  const SecretKey key;
  ContextPool<EVP_MAC_CTX, EVP_MAC_CTX_free> contexts;
};

Hmac::Hmac(SecretKey key) : keyed_(std::make_shared<Keyed>(std::move(key))) {}

Mac Hmac::of(std::initializer_list<std::span<const std::byte>> parts) const {
  auto* context = keyed_->contexts.take();
  if (context == nullptr) context = new_context(keyed_->key);
  // Without a key argument, the context restarts with its key.
  bool ok = EVP_MAC_init(context, nullptr, 0, nullptr) == 1;
  for (const auto part : parts) {
    ok = ok && EVP_MAC_update(context, evp_bytes(part), part.size()) == 1;
  }
  Mac mac{};
  std::size_t length = 0;
  ok = ok && EVP_MAC_final(context, evp_bytes(std::span<std::byte>(mac)), &length, mac.size()) == 1;
  VARVE_ASSERT(ok && length == mac.size());
  keyed_->contexts.give(context);
  return mac;
}

Mac hmac_sha256(const SecretKey& key, std::span<const std::byte> text) {
  return Hmac(key).of({text});
}

}  // namespace varve::crypto
