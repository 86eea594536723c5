// SPDX-License-Identifier: Apache-2.0
// How long the kernel may believe what it was told.
#pragma once

namespace varve::fs {

inline constexpr double kSealedTimeoutS = 86400;  ///< Nothing in a sealed version changes.
inline constexpr double kOpenTimeoutS = 30;       ///< Only the kernel itself changes open versions.
/// Versions come and go by commands too, and beside a read-only mount by another process.
inline constexpr double kSeriesTimeoutS = 1;

}  // namespace varve::fs
