// SPDX-License-Identifier: Apache-2.0
// OpenSSL's contexts that hold an expanded key, kept for the next texts under it.
#pragma once

#include <array>
#include <atomic>

namespace varve::crypto {

/// Keeps a few contexts of one key that no thread uses at present. Thread-safe, without locks.
/// `kFree` frees a context and wipes its key.
///
/// A child of a fork has copies of the contexts, and frees them as its own. It loses the memory of
/// the contexts that other threads used at the time of the fork.
template <typename Context, auto kFree>
class ContextPool {
 public:
  ContextPool() = default;
  ContextPool(const ContextPool&) = delete;
  ContextPool& operator=(const ContextPool&) = delete;
  /// Frees all contexts. No thread may have one.
  ~ContextPool() {
    for (auto& place : kept_) {
      if (auto* const context = place.load(std::memory_order_acquire)) kFree(context);
    }
  }

  /// Takes a context. Returns null if none is left: the caller then makes one.
  [[nodiscard]] Context* take() {
    for (auto& place : kept_) {
      if (place.load(std::memory_order_relaxed) == nullptr) continue;
      if (auto* const context = place.exchange(nullptr, std::memory_order_acquire)) return context;
    }
    return nullptr;
  }

  /// Gives a context back, or frees it if enough are kept.
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
  // The number of threads that use one key at a time is that of the processors or less. A key with
  // more of them sets up some contexts again.
  static constexpr std::size_t kKeptMax = 4;
  std::array<std::atomic<Context*>, kKeptMax> kept_{};
};

}  // namespace varve::crypto
