// SPDX-License-Identifier: Apache-2.0
#include "crypto/secure_memory.h"

#include <openssl/crypto.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "crypto/secret_key.h"

namespace varve::crypto {

namespace {

// Each open sealed file has a key of 32 bytes, and a daemon of many series has many open. Systems
// let a process without rights lock 8 MiB; older ones only 64 KiB.
constexpr std::size_t kSecureHeapBytesMax = std::size_t{512} << 10;
constexpr std::size_t kSecureHeapBytesMin = std::size_t{64} << 10;

std::size_t secure_heap_bytes() {
  rlimit limit{};
  const bool is_small =
      ::getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur < kSecureHeapBytesMax;
  return is_small ? kSecureHeapBytesMin : kSecureHeapBytesMax;
}

Error no_memory() {
  return {ErrorCode::kIo, "no protected memory for a key; free memory, or raise 'ulimit -l'"};
}

/// OpenSSL's secure heap: locked pages between guard pages, without core dump.
class SecureHeap {
 public:
  SecureHeap() {
    if (CRYPTO_secure_malloc_init(bytes_, kKeyBytes) == 0) return;
    begin_ = find_begin();
    process_ = ::getpid();
  }

  /// Returns memory, or null without any.
  [[nodiscard]] void* allocate(std::size_t bytes) {
    if (begin_ == nullptr) return nullptr;
    lock_in_this_process();
    return OPENSSL_secure_zalloc(bytes);
  }

 private:
  // Returns the first byte of the empty heap. Freeing a block wipes it, which takes long for one
  // that fills the heap, so this goes down from a small one, page by page.
  [[nodiscard]] void* find_begin() const {
    auto* const block = static_cast<std::byte*>(OPENSSL_secure_malloc(kKeyBytes));
    if (block == nullptr) return nullptr;
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    auto* begin = block - reinterpret_cast<std::uintptr_t>(block) % page;
    while (CRYPTO_secure_allocated(begin - page) == 1) begin -= page;
    const bool is_heap = CRYPTO_secure_allocated(begin) == 1 &&
                         CRYPTO_secure_allocated(begin + bytes_ - 1) == 1 &&
                         CRYPTO_secure_allocated(begin + bytes_) == 0;
    OPENSSL_secure_free(block);
    if (is_heap) return begin;
    void* const whole = OPENSSL_secure_malloc(bytes_);
    OPENSSL_secure_free(whole);
    return whole;
  }

  void lock_in_this_process() {
    const std::lock_guard lock(mutex_);
    if (process_ == ::getpid()) return;
    process_ = ::getpid();
    // As at first, the heap also works unlocked where the system forbids locking.
    (void)::mlock(begin_, bytes_);
  }

  const std::size_t bytes_ = secure_heap_bytes();
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
