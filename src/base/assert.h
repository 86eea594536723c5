// SPDX-License-Identifier: Apache-2.0
// Programmer errors end the process, in release builds too. Bad input never comes here.
#pragma once

namespace varve::base {
/// Prints the failed condition and aborts.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);
}  // namespace varve::base

#define VARVE_ASSERT(condition)       \
  ((condition) ? static_cast<void>(0) \
               : ::varve::base::assertion_failed(#condition, __FILE__, __LINE__))
