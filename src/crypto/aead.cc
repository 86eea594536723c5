// SPDX-License-Identifier: Apache-2.0
#include "crypto/aead.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include "base/assert.h"
#include "base/coding.h"
#include "crypto/seal_observer.h"

namespace varve::crypto {

namespace {

struct FreeEvp {
  void operator()(EVP_CIPHER* cipher) const { EVP_CIPHER_free(cipher); }
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
  void operator()(EVP_MAC* mac) const { EVP_MAC_free(mac); }
  void operator()(EVP_MAC_CTX* context) const { EVP_MAC_CTX_free(context); }
  void operator()(EVP_KDF* kdf) const { EVP_KDF_free(kdf); }
  void operator()(EVP_KDF_CTX* context) const { EVP_KDF_CTX_free(context); }
};

const unsigned char* bytes_of(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}
unsigned char* bytes_of(std::span<std::byte> bytes) {
  return reinterpret_cast<unsigned char*>(bytes.data());
}

const EVP_CIPHER* evp_cipher(Cipher cipher) {
  static const std::unique_ptr<EVP_CIPHER, FreeEvp> aes(
      EVP_CIPHER_fetch(nullptr, "AES-256-GCM", nullptr));
  static const std::unique_ptr<EVP_CIPHER, FreeEvp> chacha(
      EVP_CIPHER_fetch(nullptr, "ChaCha20-Poly1305", nullptr));
  const auto* const found = cipher == Cipher::kAes256Gcm ? aes.get() : chacha.get();
  VARVE_ASSERT(found != nullptr);
  return found;
}

// The one mutable global of the room: a test cannot pass an observer down to each place that seals.
std::atomic<SealObserver> observer_of_seals = nullptr;

/// OpenSSL's state for one text after the other. It holds the expanded key, so it is reset, which
/// wipes it, after each text.
class Context {
 public:
  Context() : context_(EVP_CIPHER_CTX_new()) { VARVE_ASSERT(context_ != nullptr); }
  [[nodiscard]] EVP_CIPHER_CTX* get() const { return context_.get(); }

 private:
  std::unique_ptr<EVP_CIPHER_CTX, FreeEvp> context_;
};

/// OpenSSL's state for one HMAC after the other, which is much faster than one state for each.
class HmacContext {
 public:
  HmacContext() {
    static const std::unique_ptr<EVP_MAC, FreeEvp> hmac(EVP_MAC_fetch(nullptr, "HMAC", nullptr));
    VARVE_ASSERT(hmac != nullptr);
    context_.reset(EVP_MAC_CTX_new(hmac.get()));
    std::array<char, 7> digest{"SHA256"};
    const std::array<OSSL_PARAM, 2> parameters{
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest.data(), 0),
        OSSL_PARAM_construct_end()};
    VARVE_ASSERT(context_ != nullptr &&
                 EVP_MAC_CTX_set_params(context_.get(), parameters.data()) == 1);
  }
  [[nodiscard]] EVP_MAC_CTX* get() const { return context_.get(); }
  /// Overwrites what the last key left.
  void forget_key() const {
    static constexpr std::array<unsigned char, kKeyBytes> kNoKey{};
    VARVE_ASSERT(EVP_MAC_init(context_.get(), kNoKey.data(), kNoKey.size(), nullptr) == 1);
  }

 private:
  std::unique_ptr<EVP_MAC_CTX, FreeEvp> context_;
};

EVP_CIPHER_CTX* context_of_this_thread() {
  static thread_local const Context context;
  return context.get();
}

int length_of(std::size_t bytes) {
  VARVE_ASSERT(bytes <= std::size_t{1} << 30);
  return static_cast<int>(bytes);
}

bool add_associated(EVP_CIPHER_CTX* context, std::span<const std::byte> associated, bool sealing) {
  if (associated.empty()) return true;
  int length = 0;
  const auto update = sealing ? EVP_EncryptUpdate : EVP_DecryptUpdate;
  return update(context, nullptr, &length, bytes_of(associated), length_of(associated.size())) == 1;
}

bool open_text(Cipher cipher, const SecretKey& key, const Nonce& nonce,
               std::span<const std::byte> associated, const std::byte* sealed, const Tag& tag,
               std::span<std::byte> out) {
  auto* const context = context_of_this_thread();
  auto expected = tag;
  int length = 0;
  unsigned char none = 0;
  const bool ok =
      EVP_DecryptInit_ex2(context, evp_cipher(cipher), bytes_of(key.bytes()), bytes_of(nonce),
                          nullptr) == 1 &&
      add_associated(context, associated, false) &&
      (out.empty() || EVP_DecryptUpdate(context, bytes_of(out), &length,
                                        reinterpret_cast<const unsigned char*>(sealed),
                                        length_of(out.size())) == 1) &&
      EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, kTagBytes, expected.data()) == 1 &&
      EVP_DecryptFinal_ex(context, &none, &length) == 1;
  EVP_CIPHER_CTX_reset(context);
  if (!ok) std::fill(out.begin(), out.end(), std::byte{0});
  return ok;
}

}  // namespace

Nonce nonce_of(std::uint64_t number) {
  Nonce nonce{};
  for (std::size_t i = 0; i < sizeof number; ++i) {
    nonce[i] = static_cast<std::byte>(number >> (8 * i));
  }
  return nonce;
}

Result<Nonce> random_nonce() {
  Nonce nonce{};
  VARVE_TRY(fill_random(nonce));
  return nonce;
}

Tag Aead::seal(const Nonce& nonce, std::span<const std::byte> associated,
               std::span<std::byte> text) const {
  if (const auto observer = observer_of_seals.load(std::memory_order_relaxed)) {
    observer({hmac_sha256(key_, base::as_bytes("observed")), nonce, associated, text});
  }
  auto* const context = context_of_this_thread();
  Tag tag{};
  int length = 0;
  unsigned char none = 0;
  const bool ok =
      EVP_EncryptInit_ex2(context, evp_cipher(cipher_), bytes_of(key_.bytes()), bytes_of(nonce),
                          nullptr) == 1 &&
      add_associated(context, associated, true) &&
      (text.empty() || EVP_EncryptUpdate(context, bytes_of(text), &length, bytes_of(text),
                                         length_of(text.size())) == 1) &&
      EVP_EncryptFinal_ex(context, &none, &length) == 1 &&
      EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, kTagBytes, tag.data()) == 1;
  EVP_CIPHER_CTX_reset(context);
  VARVE_ASSERT(ok);
  return tag;
}

bool Aead::open(const Nonce& nonce, std::span<const std::byte> associated,
                std::span<std::byte> text, const Tag& tag) const {
  return open_text(cipher_, key_, nonce, associated, text.data(), tag, text);
}

bool Aead::open(const Nonce& nonce, std::span<const std::byte> associated,
                std::span<const std::byte> sealed, const Tag& tag, std::span<std::byte> out) const {
  VARVE_ASSERT(sealed.size() == out.size());
  return open_text(cipher_, key_, nonce, associated, sealed.data(), tag, out);
}

void observe_seals(SealObserver observer) { observer_of_seals = observer; }

Result<SecretKey> derive_key(const SecretKey& key, std::span<const std::byte> salt,
                             std::string_view info) {
  return derive_key(std::span<const std::byte>(key.bytes()), salt, info);
}

Result<SecretKey> derive_key(std::span<const std::byte> secret, std::span<const std::byte> salt,
                             std::string_view info) {
  static const std::unique_ptr<EVP_KDF, FreeEvp> kdf(EVP_KDF_fetch(nullptr, "HKDF", nullptr));
  VARVE_ASSERT(kdf != nullptr);
  const std::unique_ptr<EVP_KDF_CTX, FreeEvp> context(EVP_KDF_CTX_new(kdf.get()));
  if (!context) return Error(ErrorCode::kIo, "no memory to derive a key");
  // OpenSSL's parameters are not const, but it only reads these.
  const auto octets = [](const char* name, const void* bytes, std::size_t size) {
    return OSSL_PARAM_construct_octet_string(name, const_cast<void*>(bytes), size);
  };
  std::array<char, 7> digest{"SHA256"};
  // Without a salt, HKDF takes zeros; OpenSSL refuses an empty one.
  const std::array<OSSL_PARAM, 5> parameters{
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest.data(), 0),
      octets(OSSL_KDF_PARAM_KEY, secret.data(), secret.size()),
      octets(OSSL_KDF_PARAM_INFO, info.data(), info.size()),
      salt.empty() ? OSSL_PARAM_construct_end()
                   : octets(OSSL_KDF_PARAM_SALT, salt.data(), salt.size()),
      OSSL_PARAM_construct_end()};
  std::array<std::byte, kKeyBytes> derived{};
  const bool ok = EVP_KDF_derive(context.get(), bytes_of(std::span<std::byte>(derived)),
                                 derived.size(), parameters.data()) == 1;
  VARVE_ASSERT(ok);
  auto result = SecretKey::copy_of(derived);
  wipe(derived);
  return result;
}

Mac hmac_sha256(const SecretKey& key, std::span<const std::byte> text) {
  static thread_local const HmacContext context;
  Mac mac{};
  std::size_t length = 0;
  const bool ok =
      EVP_MAC_init(context.get(), bytes_of(key.bytes()), kKeyBytes, nullptr) == 1 &&
      EVP_MAC_update(context.get(), bytes_of(text), text.size()) == 1 &&
      EVP_MAC_final(context.get(), bytes_of(std::span<std::byte>(mac)), &length, mac.size()) == 1;
  context.forget_key();
  VARVE_ASSERT(ok && length == mac.size());
  return mac;
}

Cipher faster_cipher() {
  constexpr int kTexts = 64;
  std::vector<std::byte> text(std::size_t{16} << 10);
  const auto key = SecretKey::random();
  if (!key) return Cipher::kAes256Gcm;
  const auto time_of = [&](Cipher cipher) {
    const Aead aead(cipher, *key);
    (void)aead.seal(nonce_of(0), {}, text);  // Fetches the cipher.
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 1; i <= kTexts; ++i) {
      (void)aead.seal(nonce_of(static_cast<std::uint64_t>(i)), {}, text);
    }
    return std::chrono::steady_clock::now() - begin;
  };
  return time_of(Cipher::kAes256Gcm) <= time_of(Cipher::kChaCha20Poly1305)
             ? Cipher::kAes256Gcm
             : Cipher::kChaCha20Poly1305;
}

}  // namespace varve::crypto
