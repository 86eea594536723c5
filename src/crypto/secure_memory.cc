// SPDX-License-Identifier: Apache-2.0
#include "crypto/secure_memory.h"

#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/log.h"
#include "crypto/secret_key.h"

namespace varve::crypto {

namespace {

constexpr std::size_t kSecureBytesMin = kKeyBytes;
// Space for 2,048 keys. Old systems let a process without rights lock exactly kAreaBytes.
constexpr std::size_t kAreaBytes = std::size_t{64} << 10;
constexpr std::size_t kClasses =
    std::bit_width(kSecureBytesMax) - std::bit_width(kSecureBytesMin) + 1;
static_assert(std::has_single_bit(kSecureBytesMax) && kSecureBytesMax <= kAreaBytes);

// The sizes of blocks are powers of two. Class 0 has the smallest blocks.
std::size_t class_of(std::size_t bytes) {
  return bytes <= kSecureBytesMin ? 0
                                  : std::bit_width(bytes - 1) - std::bit_width(kSecureBytesMin - 1);
}

/// A heap for secrets alone. OpenSSL's secure heap has a fixed size, and OpenSSL also allocates
/// internal objects there, such as a generator of random bytes for each thread.
///
/// The heap consists of areas of kAreaBytes between guard pages. Areas are never returned to the
/// system: later keys use the space of earlier keys.
class SecureHeap {
 public:
  /// Returns a block of zeros. Errors: kIo without memory.
  [[nodiscard]] Result<std::byte*> allocate(std::size_t bytes) {
    VARVE_ASSERT(bytes > 0 && bytes <= kSecureBytesMax);
    const std::lock_guard lock(mutex_);
    lock_in_this_process();
    const std::size_t size_class = class_of(bytes);
    if (auto* const block = free_[size_class]) {
      auto*& first = free_[size_class];
      std::memcpy(&first, block, sizeof first);
      wipe({block, sizeof first});
      return block;
    }
    const std::size_t block_bytes = kSecureBytesMin << size_class;
    if (unused_bytes_ < block_bytes) VARVE_TRY(add_area());
    auto* const block = areas_.back() + (kAreaBytes - unused_bytes_);
    unused_bytes_ -= block_bytes;
    return block;
  }

  /// Wipes a block returned by allocate() for the same number of bytes, and keeps the block's
  /// space.
  void free(std::byte* block, std::size_t bytes) {
    wipe({block, bytes});
    const std::lock_guard lock(mutex_);
    auto*& first = free_[class_of(bytes)];
    std::memcpy(block, &first, sizeof first);
    first = block;
  }

 private:
  [[nodiscard]] Result<void> add_area() {
    const std::size_t mapped_bytes = kAreaBytes + 2 * page_bytes_;
    void* const mapped =
        ::mmap(nullptr, mapped_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return no_memory();
    auto* const area = static_cast<std::byte*>(mapped) + page_bytes_;
    if (::mprotect(area, kAreaBytes, PROT_READ | PROT_WRITE) != 0) {
      ::munmap(mapped, mapped_bytes);
      return no_memory();
    }
    (void)::madvise(area, kAreaBytes, MADV_DONTDUMP);
    lock_pages(area);
    areas_.push_back(area);
    unused_bytes_ = kAreaBytes;
    return {};
  }

  static Error no_memory() { return {ErrorCode::kIo, "no memory for a key; free memory"}; }

  void lock_in_this_process() {
    if (process_ == ::getpid()) return;
    process_ = ::getpid();
    for (auto* const area : areas_) lock_pages(area);
  }

  // Locks page by page, so that a small limit is fully used.
  void lock_pages(std::byte* area) {
    for (std::size_t at = 0; at < kAreaBytes; at += page_bytes_) {
      if (::mlock(area + at, page_bytes_) == 0) continue;
      if (std::exchange(warned_, true)) return;
      base::log(base::LogLevel::kWarning,
                "the limit for locked memory is reached: the system may write further keys to its "
                "swap space; raise 'ulimit -l', or encrypt the swap space");
      return;
    }
  }

  const std::size_t page_bytes_ = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::mutex mutex_;  // Guards all members below.
  pid_t process_ = ::getpid();
  bool warned_ = false;
  std::vector<std::byte*> areas_;
  std::size_t unused_bytes_ = 0;  // The end of the last area, not yet divided into blocks.
  // The first free block of each class. A free block begins with the address of the next free
  // block, and is zero behind the address.
  std::array<std::byte*, kClasses> free_{};
};

// Never destroyed: other objects that live until the end of the process have keys.
SecureHeap& heap() {
  static auto& heap = *new SecureHeap;
  return heap;
}

}  // namespace

Result<std::shared_ptr<std::byte>> allocate_secure(std::size_t bytes) {
  VARVE_TRY_ASSIGN(auto* const block, heap().allocate(bytes));
  return std::shared_ptr<std::byte>(block,
                                    [bytes](std::byte* secret) { heap().free(secret, bytes); });
}

}  // namespace varve::crypto
