// SPDX-License-Identifier: Apache-2.0
// Ownership of OpenSSL's objects, and bytes in OpenSSL's types. Only for sources of this room.
#pragma once

#include <openssl/evp.h>
#include <openssl/kdf.h>

#include <cstddef>
#include <span>

namespace varve::crypto {

struct FreeEvp {
  void operator()(EVP_CIPHER* cipher) const { EVP_CIPHER_free(cipher); }
  void operator()(EVP_MAC* mac) const { EVP_MAC_free(mac); }
  void operator()(EVP_KDF* kdf) const { EVP_KDF_free(kdf); }
  void operator()(EVP_KDF_CTX* context) const { EVP_KDF_CTX_free(context); }
};

inline const unsigned char* evp_bytes(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}
inline unsigned char* evp_bytes(std::span<std::byte> bytes) {
  return reinterpret_cast<unsigned char*>(bytes.data());
}

}  // namespace varve::crypto
