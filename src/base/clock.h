// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "varve/types.h"

namespace varve::base {

/// A source of the current time. Tests pass their own. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Timestamp now() const = 0;
};

class SystemClock final : public Clock {
 public:
  [[nodiscard]] Timestamp now() const override;
};

}  // namespace varve::base
