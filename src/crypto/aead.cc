// SPDX-License-Identifier: Apache-2.0
#include "crypto/aead.h"

#include <openssl/core_names.h>
#include <openssl/params.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <functional>
#include <memory>
#include <vector>

#include "base/assert.h"
#include "base/coding.h"
#include "crypto/authentic.h"
#include "crypto/context_pool.h"
#include "crypto/evp.h"
#include "crypto/gcm_library.h"
#include "crypto/seal_observer.h"

namespace varve::crypto {

namespace {

const EVP_CIPHER* evp_cipher(Cipher cipher) {
  static const std::unique_ptr<EVP_CIPHER, FreeEvp> aes(
      EVP_CIPHER_fetch(nullptr, "AES-256-GCM", nullptr));
  static const std::unique_ptr<EVP_CIPHER, FreeEvp> chacha(
      EVP_CIPHER_fetch(nullptr, "ChaCha20-Poly1305", nullptr));
  const auto* const found = cipher == Cipher::kAes256Gcm ? aes.get() : chacha.get();
  VARVE_ASSERT(found != nullptr);
  return found;
}

// A mutable global: a test cannot pass an observer down to every sealing place.
std::atomic<SealObserver> observer_of_seals = nullptr;

int length_of(std::size_t bytes) {
  VARVE_ASSERT(bytes <= std::size_t{1} << 30);
  return static_cast<int>(bytes);
}

bool add_associated(EVP_CIPHER_CTX* context, std::span<const std::byte> associated, bool sealing) {
  if (associated.empty()) return true;
  int length = 0;
  const auto update = sealing ? EVP_EncryptUpdate : EVP_DecryptUpdate;
  return update(context, nullptr, &length, evp_bytes(associated), length_of(associated.size())) ==
         1;
}

/// Returns whether `decrypt` turns each piece of `sealed` into zeros.
bool opens_to_zeros(
    std::span<const std::byte> sealed, std::span<std::byte> room,
    const std::function<bool(std::span<const std::byte>, std::span<std::byte>)>& decrypt) {
  while (!sealed.empty()) {
    const auto part = sealed.first(std::min(room.size(), sealed.size()));
    const auto text = room.first(part.size());
    if (!decrypt(part, text)) return false;
    std::byte any{0};
    for (const std::byte b : text) any |= b;
    if (any != std::byte{0}) return false;
    sealed = sealed.subspan(part.size());
  }
  return true;
}

EVP_CIPHER_CTX* new_context(Cipher cipher, const SecretKey& key) {
  auto* const context = EVP_CIPHER_CTX_new();
  VARVE_ASSERT(context != nullptr &&
               EVP_EncryptInit_ex2(context, evp_cipher(cipher), evp_bytes(key.bytes()), nullptr,
                                   nullptr) == 1);
  return context;
}

}  // namespace

Nonce nonce_of(std::uint64_t number) {
  Nonce nonce{};
  for (std::size_t i = 0; i < sizeof number; ++i) {
    nonce[i] = static_cast<std::byte>(number >> (8 * i));
  }
  return nonce;
}

struct Aead::Keyed {
  using Contexts = ContextPool<EVP_CIPHER_CTX, EVP_CIPHER_CTX_free>;

  /// A context used by one text.
  class Use {
   public:
    explicit Use(Keyed& keyed) : keyed_(keyed), context_(keyed.contexts.take()) {
      if (context_ == nullptr) context_ = new_context(keyed.cipher, keyed.key);
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use() { keyed_.contexts.give(context_); }
    [[nodiscard]] EVP_CIPHER_CTX* get() const { return context_; }

   private:
    Keyed& keyed_;
    EVP_CIPHER_CTX* context_;
  };

  Keyed(Cipher which, SecretKey of)
      : cipher(which),
        key(std::move(of)),
        fast(which == Cipher::kAes256Gcm ? GcmKey::expand(key) : nullptr) {}
  [[nodiscard]] Tag seal(const Nonce& nonce, std::span<const std::byte> associated,
                         std::span<std::byte> text);
  [[nodiscard]] bool open(const Nonce& nonce, std::span<const std::byte> associated,
                          const std::byte* sealed, const Tag& tag, std::span<std::byte> out);
  [[nodiscard]] bool is_sealed_zeros(const Nonce& nonce, std::span<const std::byte> sealed);

  const Cipher cipher;
  const SecretKey key;
  const std::unique_ptr<const GcmKey> fast;  // Null: OpenSSL has the key, in `contexts`.
  Contexts contexts;
};

bool Aead::Keyed::open(const Nonce& nonce, std::span<const std::byte> associated,
                       const std::byte* sealed, const Tag& tag, std::span<std::byte> out) {
  const auto refuse = [&] {
    std::fill(out.begin(), out.end(), std::byte{0});
    return false;
  };
  if (fast) {
    return is_authentic(tag, fast->open(nonce, associated, sealed, out)) || refuse();
  }
  const Use use(*this);
  auto expected = tag;
  int length = 0;
  unsigned char none = 0;
  const bool ok =
      EVP_DecryptInit_ex2(use.get(), nullptr, nullptr, evp_bytes(nonce), nullptr) == 1 &&
      add_associated(use.get(), associated, false) &&
      (out.empty() || EVP_DecryptUpdate(use.get(), evp_bytes(out), &length,
                                        reinterpret_cast<const unsigned char*>(sealed),
                                        length_of(out.size())) == 1) &&
      EVP_CIPHER_CTX_ctrl(use.get(), EVP_CTRL_AEAD_SET_TAG, kTagBytes, expected.data()) == 1 &&
      EVP_DecryptFinal_ex(use.get(), &none, &length) == 1;
  return ok || refuse();
}

Tag Aead::Keyed::seal(const Nonce& nonce, std::span<const std::byte> associated,
                      std::span<std::byte> text) {
  if (fast) return fast->seal(nonce, associated, text);
  const Use use(*this);
  Tag tag{};
  int length = 0;
  unsigned char none = 0;
  const bool ok =
      EVP_EncryptInit_ex2(use.get(), nullptr, nullptr, evp_bytes(nonce), nullptr) == 1 &&
      add_associated(use.get(), associated, true) &&
      (text.empty() || EVP_EncryptUpdate(use.get(), evp_bytes(text), &length, evp_bytes(text),
                                         length_of(text.size())) == 1) &&
      EVP_EncryptFinal_ex(use.get(), &none, &length) == 1 &&
      EVP_CIPHER_CTX_ctrl(use.get(), EVP_CTRL_AEAD_GET_TAG, kTagBytes, tag.data()) == 1;
  VARVE_ASSERT(ok);
  return tag;
}

bool Aead::Keyed::is_sealed_zeros(const Nonce& nonce, std::span<const std::byte> sealed) {
  std::array<std::byte, 4096> room;
  if (fast) {
    const GcmStream stream(*fast, nonce);
    return opens_to_zeros(sealed, room, [&](auto part, auto text) {
      stream.decrypt(part, text);
      return true;
    });
  }
  const Use use(*this);
  return EVP_DecryptInit_ex2(use.get(), nullptr, nullptr, evp_bytes(nonce), nullptr) == 1 &&
         opens_to_zeros(sealed, room, [&](auto part, auto text) {
           int length = 0;
           return EVP_DecryptUpdate(use.get(), evp_bytes(text), &length, evp_bytes(part),
                                    length_of(part.size())) == 1;
         });
}

Aead::Aead(Cipher cipher, SecretKey key)
    : keyed_(std::make_shared<Keyed>(cipher, std::move(key))) {}

Tag Aead::seal(const Nonce& nonce, std::span<const std::byte> associated,
               std::span<std::byte> text) const {
  if (const auto observer = observer_of_seals.load(std::memory_order_relaxed)) {
    observer({hmac_sha256(keyed_->key, base::as_bytes("observed")), nonce, associated, text});
  }
  return keyed_->seal(nonce, associated, text);
}

Tag Aead::secret_digest(std::span<const std::byte> text) const {
  return keyed_->seal(nonce_of(0), text, {});
}

bool Aead::open(const Nonce& nonce, std::span<const std::byte> associated,
                std::span<std::byte> text, const Tag& tag) const {
  return keyed_->open(nonce, associated, text.data(), tag, text);
}

bool Aead::open(const Nonce& nonce, std::span<const std::byte> associated,
                std::span<const std::byte> sealed, const Tag& tag, std::span<std::byte> out) const {
  VARVE_ASSERT(sealed.size() == out.size());
  return keyed_->open(nonce, associated, sealed.data(), tag, out);
}

bool Aead::is_sealed_zeros(const Nonce& nonce, std::span<const std::byte> sealed) const {
  return keyed_->is_sealed_zeros(nonce, sealed);
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
  // OpenSSL's parameters are not const, but OpenSSL only reads the bytes.
  const auto octets = [](const char* name, const void* bytes, std::size_t size) {
    return OSSL_PARAM_construct_octet_string(name, const_cast<void*>(bytes), size);
  };
  std::array<char, 7> digest{"SHA256"};
  // Without a salt, HKDF uses zeros; OpenSSL refuses an empty salt.
  const std::array<OSSL_PARAM, 5> parameters{
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest.data(), 0),
      octets(OSSL_KDF_PARAM_KEY, secret.data(), secret.size()),
      octets(OSSL_KDF_PARAM_INFO, info.data(), info.size()),
      salt.empty() ? OSSL_PARAM_construct_end()
                   : octets(OSSL_KDF_PARAM_SALT, salt.data(), salt.size()),
      OSSL_PARAM_construct_end()};
  std::array<std::byte, kKeyBytes> derived{};
  const bool ok = EVP_KDF_derive(context.get(), evp_bytes(std::span<std::byte>(derived)),
                                 derived.size(), parameters.data()) == 1;
  VARVE_ASSERT(ok);
  auto result = SecretKey::copy_of(derived);
  wipe(derived);
  return result;
}

// Compares the least of some times of the thread: the other work of the machine makes a text take
// longer, and the repository keeps its cipher for ever.
Cipher faster_cipher() {
  constexpr int kRounds = 8;
  constexpr int kTexts = 8;
  std::vector<std::byte> text(std::size_t{16} << 10);
  const auto key = SecretKey::random();
  if (!key) return Cipher::kAes256Gcm;
  const auto thread_time = [] {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  };
  const auto time_of = [&](Cipher cipher) {
    const Aead aead(cipher, *key);
    (void)aead.seal(nonce_of(0), {}, text);  // Fetches the cipher.
    auto least = std::chrono::nanoseconds::max();
    std::uint64_t nonce = 0;
    for (int round = 0; round < kRounds; ++round) {
      const auto begin = thread_time();
      for (int i = 0; i < kTexts; ++i) (void)aead.seal(nonce_of(++nonce), {}, text);
      least = std::min(least, thread_time() - begin);
    }
    return least;
  };
  return time_of(Cipher::kAes256Gcm) <= time_of(Cipher::kChaCha20Poly1305)
             ? Cipher::kAes256Gcm
             : Cipher::kChaCha20Poly1305;
}

}  // namespace varve::crypto
