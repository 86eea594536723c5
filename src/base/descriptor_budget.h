// SPDX-License-Identifier: Apache-2.0
// Bounds the descriptors whose use only a user ends.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "varve/result.h"

namespace varve::base {

/// Counts the descriptors in use until a user ends the use, such as the descriptors of open
/// versions. The budget leaves descriptors for work with a near end: reads, checkpoints and
/// seals. So a user can still seal or drop open versions when the budget is used up.
///
/// Thread-safe.
class DescriptorBudget {
  using Count = std::atomic<std::size_t>;

 public:
  /// The right to a descriptor. Lifetime: may outlive the budget.
  class Share {
   public:
    Share(Share&& other) noexcept = default;
    Share& operator=(Share&&) = delete;
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;
    ~Share() {
      if (taken_) --*taken_;
    }

   private:
    friend class DescriptorBudget;
    explicit Share(std::shared_ptr<Count> taken) : taken_(std::move(taken)) {}
    std::shared_ptr<Count> taken_;
  };

  explicit DescriptorBudget(std::size_t max) : max_(max) {}
  /// Returns the budget of a process, by the limit on open files.
  [[nodiscard]] static std::size_t of_process();

  /// Takes a descriptor from the budget. `what` names the work that needs the descriptor.
  /// Errors: kIo with EMFILE if the budget is used up.
  [[nodiscard]] Result<Share> take(const std::string& what);

 private:
  const std::size_t max_;
  const std::shared_ptr<Count> taken_ = std::make_shared<Count>(0);
};

}  // namespace varve::base
