// SPDX-License-Identifier: Apache-2.0
#include "catalog/stored_name.h"

#include "format/dir_entry_codec.h"
#include "varve/version_name.h"

namespace varve {

namespace {

Result<void> check_name(std::string_view name, const char* message) {
  if (name.size() > kNameBytesMax) {
    return Error(ErrorCode::kNameTooLong, "a name has at most 255 bytes");
  }
  if (!format::is_entry_name(name)) return Error(ErrorCode::kInvalid, message);
  return {};
}

}  // namespace

Result<void> check_series_name(std::string_view name) {
  return check_name(name, "not a name for a series");
}

Result<void> check_version_name(std::string_view name, VersionState state) {
  VARVE_TRY(check_name(name, "not a name for a version"));
  if (name == kLatestName) {
    return Error(ErrorCode::kExists, "`latest` always names the newest sealed version");
  }
  if (state == VersionState::kSealed && is_partial_name(name)) {
    return Error(ErrorCode::kNotPermitted, "a sealed version cannot be called .partial");
  }
  return {};
}

namespace catalog {

std::string replacement_name(std::uint32_t number) {
  return "invalid-name-" + std::to_string(number);
}

}  // namespace catalog

}  // namespace varve
