// SPDX-License-Identifier: Apache-2.0
#include "format/fingerprinter.h"

#include <openssl/evp.h>

#include "base/assert.h"

namespace varve::format {

namespace {

// OpenSSL's state, reused for successive digests. Creating a state costs as much as hashing a small
// chunk, so each thread keeps a state.
class Sha256State {
 public:
  Sha256State() : md_(EVP_MD_fetch(nullptr, "SHA256", nullptr)), context_(EVP_MD_CTX_new()) {
    VARVE_ASSERT(md_ != nullptr && context_ != nullptr);
  }

  Fingerprint digest(std::span<const std::byte> bytes) {
    Fingerprint out{};
    unsigned length = 0;
    const bool ok = EVP_DigestInit_ex2(context_.get(), md_.get(), nullptr) == 1 &&
                    EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1 &&
                    EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(out.data()),
                                       &length) == 1;
    VARVE_ASSERT(ok && length == out.size());
    return out;
  }

 private:
  struct Free {
    void operator()(EVP_MD* md) const { EVP_MD_free(md); }
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD, Free> md_;
  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

class Sha256Fingerprinter final : public Fingerprinter {
 public:
  [[nodiscard]] Fingerprint fingerprint(std::span<const std::byte> bytes) const override {
    static thread_local Sha256State state;
    return state.digest(bytes);
  }
};

}  // namespace

std::unique_ptr<const Fingerprinter> make_sha256_fingerprinter() {
  return std::make_unique<Sha256Fingerprinter>();
}

}  // namespace varve::format
