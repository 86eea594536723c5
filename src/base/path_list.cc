// SPDX-License-Identifier: Apache-2.0
#include "base/path_list.h"

#include <cstdlib>
#include <memory>
#include <string_view>

namespace varve::base {

namespace {

std::string resolved(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), std::free);
  return real == nullptr ? std::string() : std::string(real.get());
}

}  // namespace

bool is_listed_path(const char* variable, const std::string& path) {
  const char* value = std::getenv(variable);
  if (value == nullptr) return false;
  const auto wanted = resolved(path);
  std::string_view rest = value;
  while (!wanted.empty() && !rest.empty()) {
    const auto listed = rest.substr(0, rest.find(':'));
    rest.remove_prefix(listed.size() == rest.size() ? rest.size() : listed.size() + 1);
    if (listed.starts_with('/') && resolved(std::string(listed)) == wanted) return true;
  }
  return false;
}

}  // namespace varve::base
