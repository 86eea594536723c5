// SPDX-License-Identifier: Apache-2.0
// Reads files of /proc, whose length is unknown before the end of the read.
#pragma once

#include <string>

namespace varve::base {

/// Returns the text of a file; "" if the file cannot be read.
[[nodiscard]] std::string text_of_file(const std::string& path);

}  // namespace varve::base
