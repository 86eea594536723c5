// SPDX-License-Identifier: Apache-2.0
#include "crypto/secret_key.h"

#include <openssl/crypto.h>

#include <algorithm>

#include "base/random_bytes.h"
#include "crypto/authentic.h"
#include "crypto/secure_memory.h"

namespace varve::crypto {

Result<SecretKey> SecretKey::random() {
  VARVE_TRY_ASSIGN(auto bytes, allocate_secure(kKeyBytes));
  VARVE_TRY(base::fill_random({bytes.get(), kKeyBytes}));
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
  return is_authentic(other.bytes(), bytes());
}

void wipe(std::span<std::byte> bytes) { OPENSSL_cleanse(bytes.data(), bytes.size()); }

}  // namespace varve::crypto
