// SPDX-License-Identifier: Apache-2.0
// Finds the local folder attached to a place in an object store.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "control/mounted_path.h"
#include "varve/options.h"
#include "varve/result.h"

namespace varve::control {

/// Returns whether a word of a command line names an object store: see varve::is_store_place().
[[nodiscard]] bool names_store(std::string_view word);

/// How a command uses a place.
struct PlaceUse {
  /// With kLook, a place without a folder is attached in a folder of the user's cache.
  Purpose purpose = Purpose::kChange;
  /// Returns the options to attach a folder; must be set with kLook. attach_to_store() uses the
  /// memory folder of the options.
  std::function<OpenOptions(const std::string& folder)> options{};
};

/// Returns the folder of a place; any other word unchanged. Of several folders, prefers the folder
/// that writes.
/// Errors: kUsage for an invalid place, and if several folders write to the place; kNoRepository
/// with advice if there is no folder; the errors of attach_to_store().
[[nodiscard]] Result<std::string> folder_of_place(const std::string& word, const PlaceUse& use);

/// Returns the remembered folder of a place, without attaching a new folder; any other word
/// unchanged.
/// Errors: as folder_of_place().
[[nodiscard]] Result<std::string> known_folder_of_place(const std::string& word);

}  // namespace varve::control
