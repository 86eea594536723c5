// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "varve/types.h"

namespace varve::base {

/// A source of the current time. Tests pass a fake clock. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Timestamp now() const = 0;
};

class SystemClock final : public Clock {
 public:
  [[nodiscard]] Timestamp now() const override;
};

/// Returns "2026-03-01 12:30:00" in local time, or the seconds since 1970 for a time outside the
/// calendar.
[[nodiscard]] std::string local_time_text(const Timestamp& time);

}  // namespace varve::base
