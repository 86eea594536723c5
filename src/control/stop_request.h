// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>

#include "base/unique_fd.h"

namespace varve::control {

/// A request from another thread to stop an operation of a RepositoryControl.
class StopRequest {
 public:
  StopRequest();
  /// Requests the stop. Thread-safe; may be called more than once.
  void stop();
  [[nodiscard]] bool stopped() const { return source_.stop_requested(); }
  [[nodiscard]] std::stop_token token() const { return source_.get_token(); }
  /// Returns a descriptor that is readable after stop(); -1 if the process had none left.
  [[nodiscard]] int descriptor() const { return event_.get(); }

 private:
  std::stop_source source_;
  base::UniqueFd event_;
};

}  // namespace varve::control
