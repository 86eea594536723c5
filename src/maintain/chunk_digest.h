// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/evp.h>

#include <cstddef>
#include <memory>
#include <span>

#include "varve/types.h"

namespace varve::maintain {

/// SHA-256 of stored chunks, by OpenSSL. Not thread-safe.
class ChunkDigest {
 public:
  [[nodiscard]] Fingerprint of(std::span<const std::byte> bytes) {
    Fingerprint out{};
    unsigned length = 0;
    EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(out.data()), &length,
               EVP_sha256(), nullptr);
    return out;
  }
};

}  // namespace varve::maintain
