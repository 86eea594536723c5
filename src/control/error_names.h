// SPDX-License-Identifier: Apache-2.0
// The names of error codes in replies. A code unknown to older clients has the name of the nearest
// known code. A reader takes the first code with a name.
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "varve/result.h"

namespace varve::control {

inline constexpr std::array<std::pair<ErrorCode, std::string_view>, 29> kCodes = {{
    {ErrorCode::kIo, "io"},
    {ErrorCode::kCorrupt, "corrupt"},
    {ErrorCode::kNotFound, "not_found"},
    {ErrorCode::kExists, "exists"},
    {ErrorCode::kInvalid, "invalid"},
    {ErrorCode::kBusy, "busy"},
    {ErrorCode::kReadOnly, "read_only"},
    {ErrorCode::kNoSpace, "no_space"},
    {ErrorCode::kNotPermitted, "not_permitted"},
    {ErrorCode::kNotEmpty, "not_empty"},
    {ErrorCode::kNotDirectory, "not_directory"},
    {ErrorCode::kIsDirectory, "is_directory"},
    {ErrorCode::kNameTooLong, "name_too_long"},
    {ErrorCode::kOtherVersion, "other_version"},
    {ErrorCode::kLocked, "locked"},
    {ErrorCode::kNoRepository, "no_repository"},
    {ErrorCode::kUnsupported, "unsupported"},
    {ErrorCode::kTooLarge, "too_large"},
    {ErrorCode::kStale, "stale"},
    {ErrorCode::kNoAttribute, "no_attribute"},
    {ErrorCode::kInterrupted, "interrupted"},
    {ErrorCode::kUnavailable, "unavailable"},
    {ErrorCode::kAttributeTooLarge, "too_large"},
    {ErrorCode::kPastEnd, "not_found"},
    {ErrorCode::kBadHandle, "invalid"},
    {ErrorCode::kUsage, "invalid"},
    {ErrorCode::kWrongKey, "wrong_key"},
    {ErrorCode::kRefused, "refused"},
    {ErrorCode::kIncomplete, "incomplete"},
}};

/// Returns the exit code of a command that ends with an error of this code.
inline int exit_code_of(ErrorCode code) {
  if (code == ErrorCode::kNoRepository) return 10;
  if (code == ErrorCode::kRefused) return 13;
  if (code == ErrorCode::kIncomplete) return 3;
  return code == ErrorCode::kLocked ? 11 : 1;
}

}  // namespace varve::control
