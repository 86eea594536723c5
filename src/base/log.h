// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace varve::base {

enum class LogLevel { kError = 0, kWarning = 1, kInfo = 2, kDebug = 3 };

/// Writes one line to stderr, or to syslog(3) after use_syslog(). Thread-safe.
void log(LogLevel level, std::string_view message);
/// Drops lines above `level`. The default is kWarning.
void set_log_level(LogLevel level);
/// Sends further lines to syslog(3). For a daemon with closed stderr.
void use_syslog();

}  // namespace varve::base
