// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/evp.h>

#include <cstddef>
#include <memory>
#include <span>

#include "varve/types.h"

namespace varve::format {

/// SHA-256 by OpenSSL. One a thread: not thread-safe, but cheap to keep.
class Fingerprinter {
 public:
  Fingerprinter();
  [[nodiscard]] Fingerprint fingerprint(std::span<const std::byte> bytes);

 private:
  struct Free {
    void operator()(EVP_MD* md) const { EVP_MD_free(md); }
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD, Free> md_;
  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

}  // namespace varve::format
