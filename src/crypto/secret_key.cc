// SPDX-License-Identifier: Apache-2.0
#include "crypto/secret_key.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <algorithm>
#include <mutex>

namespace varve::crypto {

namespace {

// OpenSSL's secure heap holds this many bytes: 2048 keys. A repository needs a few at a time.
constexpr std::size_t kSecureHeapBytes = std::size_t{64} << 10;

/// Makes OpenSSL's secure heap: locked pages between guard pages, without core dump.
bool secure_heap_works() {
  static std::once_flag once;
  static bool works = false;
  std::call_once(once, [] {
    works = CRYPTO_secure_malloc_initialized() == 1 ||
            CRYPTO_secure_malloc_init(kSecureHeapBytes, kKeyBytes) != 0;
  });
  return works;
}

Error no_memory() {
  return {ErrorCode::kIo, "no protected memory for a key; free memory, or raise 'ulimit -l'"};
}

}  // namespace

Result<std::shared_ptr<std::byte>> SecretKey::allocate() {
  if (!secure_heap_works()) return no_memory();
  void* const bytes = OPENSSL_secure_zalloc(kKeyBytes);
  if (bytes == nullptr) return no_memory();
  return std::shared_ptr<std::byte>(static_cast<std::byte*>(bytes), [](std::byte* key) {
    OPENSSL_secure_clear_free(key, kKeyBytes);
  });
}

Result<SecretKey> SecretKey::random() {
  VARVE_TRY_ASSIGN(auto bytes, allocate());
  if (RAND_priv_bytes(reinterpret_cast<unsigned char*>(bytes.get()), kKeyBytes) != 1) {
    return Error(ErrorCode::kIo, "the system gave no random bytes for a key");
  }
  return SecretKey(std::move(bytes));
}

Result<SecretKey> SecretKey::copy_of(std::span<const std::byte, kKeyBytes> bytes) {
  VARVE_TRY_ASSIGN(auto copy, allocate());
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
