// SPDX-License-Identifier: Apache-2.0
#include "crypto/secret_key.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <algorithm>

#include "crypto/secure_memory.h"

namespace varve::crypto {

Result<SecretKey> SecretKey::random() {
  VARVE_TRY_ASSIGN(auto bytes, allocate_secure(kKeyBytes));
  if (RAND_priv_bytes(reinterpret_cast<unsigned char*>(bytes.get()), kKeyBytes) != 1) {
    return Error(ErrorCode::kIo, "the system gave no random bytes for a key");
  }
  return SecretKey(std::move(bytes));
}

Result<SecretKey> SecretKey::copy_of(std::span<const std::byte, kKeyBytes> bytes) {
  VARVE_TRY_ASSIGN(auto copy, allocate_secure(kKeyBytes));
  std::copy(bytes.begin(), bytes.end(), copy.get());
  return SecretKey(std::move(copy));
}

std::span<const std::byte, kKeyBytes> SecretKey::bytes() const {
  return std::span<const std::byte, kKeyBytes>(bytes_.get(), kKeyBytes);
}

bool SecretKey::equals(const SecretKey& other) const {
  return CRYPTO_memcmp(bytes_.get(), other.bytes_.get(), kKeyBytes) == 0;
}

void wipe(std::span<std::byte> bytes) { OPENSSL_cleanse(bytes.data(), bytes.size()); }

Result<void> fill_random(std::span<std::byte> out) {
  if (RAND_bytes(reinterpret_cast<unsigned char*>(out.data()), static_cast<int>(out.size())) != 1) {
    return Error(ErrorCode::kIo, "the system gave no random bytes");
  }
  return {};
}

}  // namespace varve::crypto
