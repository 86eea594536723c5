// SPDX-License-Identifier: Apache-2.0
// OpenSSL's contexts with an expanded key, kept for the next texts under the same key.
#pragma once

#include <array>
#include <atomic>

namespace varve::crypto {

/// Keeps a few unused contexts of one key. Thread-safe, without locks. `kFree` frees a context and
/// wipes its key.
///
/// A child of a fork has copies of the contexts, and frees the copies. The child leaks the memory
/// of all contexts in use by other threads at the time of the fork.
template <typename Context, auto kFree>
class ContextPool {
 public:
  ContextPool() = default;
  ContextPool(const ContextPool&) = delete;
  ContextPool& operator=(const ContextPool&) = delete;
  /// Frees all contexts. No thread may hold a context.
  ~ContextPool() {
    for (auto& place : kept_) {
      if (auto* const context = place.load(std::memory_order_acquire)) kFree(context);
    }
  }

  /// Takes a context. Returns null without a free context: the caller then creates a context.
  [[nodiscard]] Context* take() {
    for (auto& place : kept_) {
      if (place.load(std::memory_order_relaxed) == nullptr) continue;
      if (auto* const context = place.exchange(nullptr, std::memory_order_acquire)) return context;
    }
    return nullptr;
  }

  /// Returns a context to the pool, or frees the context if the pool is full.
  void give(Context* context) {
    for (auto& place : kept_) {
      Context* none = nullptr;
      if (place.compare_exchange_strong(none, context, std::memory_order_release,
                                        std::memory_order_relaxed)) {
        return;
      }
    }
    kFree(context);
  }

 private:
  // The number of threads using one key at a time is at most the number of processors. A key with
  // more than kKeptMax threads sets up some contexts again.
  static constexpr std::size_t kKeptMax = 4;
  std::array<std::atomic<Context*>, kKeptMax> kept_{};
};

}  // namespace varve::crypto
