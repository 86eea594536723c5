// SPDX-License-Identifier: Apache-2.0
// Tells waiting code whether the program waiting for the thread was interrupted.
#pragma once

#include <atomic>

namespace varve::base {

/// Defines how to detect the interruption of the request being served by a thread. Lasts until the
/// scope ends.
class InterruptionScope {
 public:
  /// Returns whether the request was interrupted.
  using Probe = bool (*)(void* request);

  InterruptionScope(Probe probe, void* request)
      : outer_(innermost()), probe_(probe), request_(request) {
    innermost() = this;
  }
  InterruptionScope(const InterruptionScope&) = delete;
  InterruptionScope& operator=(const InterruptionScope&) = delete;
  ~InterruptionScope() { innermost() = outer_; }

  /// Returns whether the request served by the calling thread, or the whole process, was
  /// interrupted.
  [[nodiscard]] static bool is_interrupted() {
    const auto* const scope = innermost();
    return all_interrupted() || (scope != nullptr && scope->probe_(scope->request_));
  }
  /// Interrupts all present and future waits: the process ends.
  static void interrupt_all() { all_interrupted() = true; }

 private:
  static InterruptionScope*& innermost() {
    static thread_local InterruptionScope* scope = nullptr;
    return scope;
  }
  static std::atomic<bool>& all_interrupted() {
    static std::atomic<bool> interrupted = false;
    return interrupted;
  }

  InterruptionScope* const outer_;
  const Probe probe_;
  void* const request_;
};

}  // namespace varve::base
