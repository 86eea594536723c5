// SPDX-License-Identifier: Apache-2.0
// Errors of an object store that pass without a change in the folder.
#pragma once

#include <chrono>

#include "varve/result.h"

namespace varve::remote {

/// The pauses between the attempts of a replication: the first, doubled after each attempt, up to
/// the limit.
inline constexpr std::chrono::milliseconds kAttemptPauseFirst{500};
inline constexpr std::chrono::milliseconds kAttemptPauseMax{20000};

/// Returns whether a later attempt may succeed: the store did not answer, or a file changed during
/// the upload.
[[nodiscard]] inline bool is_passing(const Error& error) {
  return error.code() == ErrorCode::kUnavailable || error.code() == ErrorCode::kStale;
}

/// Returns whether the store does not answer, so that an attached folder shows its present state.
/// Logs the error.
[[nodiscard]] bool is_out_of_reach(const Error& error);

}  // namespace varve::remote
