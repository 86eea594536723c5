// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace varve::test {

/// Whether the program runs under ThreadSanitizer, where what is done by many threads takes up
/// to fifty times as long.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadsWatched = true;
#else
inline constexpr bool kThreadsWatched = false;
#endif

/// Whether the program runs under a sanitizer that replaces the allocator.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace varve::test
