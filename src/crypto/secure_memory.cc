// SPDX-License-Identifier: Apache-2.0
#include "crypto/secure_memory.h"

#include <openssl/crypto.h>
#include <sys/mman.h>
#include <unistd.h>

#include <mutex>

#include "crypto/secret_key.h"

namespace varve::crypto {

namespace {

// Enough for 1500 keys and a few secrets of users. Systems let a process without rights lock 8 MiB;
// older ones only 64 KiB.
constexpr std::size_t kSecureHeapBytes = std::size_t{64} << 10;

Error no_memory() {
  return {ErrorCode::kIo, "no protected memory for a key; free memory, or raise 'ulimit -l'"};
}

/// OpenSSL's secure heap: locked pages between guard pages, without core dump.
class SecureHeap {
 public:
  SecureHeap() {
    if (CRYPTO_secure_malloc_init(kSecureHeapBytes, kKeyBytes) == 0) return;
    // The one block that fills the heap tells where it begins.
    begin_ = OPENSSL_secure_malloc(kSecureHeapBytes);
    OPENSSL_secure_free(begin_);
    process_ = ::getpid();
  }

  /// Returns memory, or null without any.
  [[nodiscard]] void* allocate(std::size_t bytes) {
    if (begin_ == nullptr) return nullptr;
    lock_in_this_process();
    return OPENSSL_secure_zalloc(bytes);
  }

 private:
  void lock_in_this_process() {
    const std::lock_guard lock(mutex_);
    if (process_ == ::getpid()) return;
    process_ = ::getpid();
    // As at first, the heap also works unlocked where the system forbids locking.
    (void)::mlock(begin_, kSecureHeapBytes);
  }

  void* begin_ = nullptr;
  std::mutex mutex_;  // Guards process_.
  pid_t process_ = 0;
};

}  // namespace

Result<std::shared_ptr<std::byte>> allocate_secure(std::size_t bytes) {
  static SecureHeap heap;
  void* const memory = heap.allocate(bytes);
  if (memory == nullptr) return no_memory();
  return std::shared_ptr<std::byte>(static_cast<std::byte*>(memory), [bytes](std::byte* secret) {
    OPENSSL_secure_clear_free(secret, bytes);
  });
}

}  // namespace varve::crypto
