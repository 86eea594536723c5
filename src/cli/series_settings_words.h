// SPDX-License-Identifier: Apache-2.0
// The words KEY=VALUE of `varve config`.
#pragma once

#include <string>
#include <vector>

#include "varve/options.h"
#include "varve/result.h"

namespace varve::cli {

/// Removes the settings from the end of `words`, and returns them. A word is a setting if it has a
/// `=` without a slash before it.
[[nodiscard]] std::vector<std::string> take_setting_words(std::vector<std::string>& words);

/// Parses words of the form KEY=VALUE.
/// Errors: kInvalid for an unknown key or value, and for a key that is given twice; the message
/// lists the valid ones.
[[nodiscard]] Result<SeriesOptions> parse_series_settings(const std::vector<std::string>& words);

}  // namespace varve::cli
