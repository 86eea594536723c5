// SPDX-License-Identifier: Apache-2.0
// Shows times in a calendar.
#pragma once

#include <ctime>
#include <optional>
#include <string>

#include "varve/types.h"

namespace varve::base {

/// Returns the time in the form of strftime(3); the text has less than 64 bytes. `calendar` is
/// gmtime_r or localtime_r. Returns nullopt for a time outside the calendar, as a forged catalog
/// may have.
[[nodiscard]] inline std::optional<std::string> calendar_text(
    const Timestamp& time, std::tm* (*calendar)(const std::time_t*, std::tm*), const char* form) {
  const auto seconds = static_cast<std::time_t>(time.seconds);
  std::tm parts{};
  char text[64];
  if (calendar(&seconds, &parts) == nullptr ||
      std::strftime(text, sizeof text, form, &parts) == 0) {
    return std::nullopt;
  }
  return text;
}

}  // namespace varve::base
