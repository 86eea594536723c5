// SPDX-License-Identifier: Apache-2.0
#include "crypto/authentic.h"

#include <openssl/crypto.h>

namespace varve::crypto {

bool is_authentic(std::span<const std::byte> given, std::span<const std::byte> expected) {
  return !expected.empty() && given.size() == expected.size() &&
         CRYPTO_memcmp(given.data(), expected.data(), expected.size()) == 0;
}

}  // namespace varve::crypto
