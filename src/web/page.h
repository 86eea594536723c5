// SPDX-License-Identifier: Apache-2.0
// The files of the page, built into the program.
#pragma once

#include <span>
#include <string_view>

namespace varve::web {

/// A file of the page.
struct PageFile {
  std::string_view path;  ///< Path in a request, such as "/style.css".
  std::string_view type;  ///< Value of Content-Type.
  std::string_view bytes;
};

/// Returns the files of the page. Lifetime: as long as the program.
[[nodiscard]] std::span<const PageFile> page_files();

}  // namespace varve::web
