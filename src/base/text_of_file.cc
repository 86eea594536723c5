// SPDX-License-Identifier: Apache-2.0
#include "base/text_of_file.h"

#include <fstream>
#include <sstream>
#include <utility>

namespace varve::base {

std::string text_of_file(const std::string& path) {
  const std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

}  // namespace varve::base
