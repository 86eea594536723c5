// SPDX-License-Identifier: Apache-2.0
#include "format/fingerprinter.h"

#include "base/assert.h"

namespace varve::format {

Fingerprinter::Fingerprinter()
    : md_(EVP_MD_fetch(nullptr, "SHA256", nullptr)), context_(EVP_MD_CTX_new()) {
  VARVE_ASSERT(md_ != nullptr && context_ != nullptr);
}

Fingerprint Fingerprinter::fingerprint(std::span<const std::byte> bytes) {
  Fingerprint out{};
  unsigned length = 0;
  const bool ok = EVP_DigestInit_ex2(context_.get(), md_.get(), nullptr) == 1 &&
                  EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1 &&
                  EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(out.data()),
                                     &length) == 1;
  VARVE_ASSERT(ok && length == out.size());
  return out;
}

}  // namespace varve::format
