// SPDX-License-Identifier: Apache-2.0
// How long the kernel may cache names and attributes.
#pragma once

namespace varve::fs {

/// Time for sealed versions, in which nothing changes.
inline constexpr double kSealedTimeoutS = 86400;
/// Time for open versions, which change only through the kernel.
inline constexpr double kOpenTimeoutS = 30;
/// Time for the root and series. Commands also create and delete versions, and in a read-only mount
/// another process does.
inline constexpr double kSeriesTimeoutS = 1;

}  // namespace varve::fs
