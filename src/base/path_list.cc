// SPDX-License-Identifier: Apache-2.0
#include "base/path_list.h"

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace varve::base {

namespace {

/// Resolves the links of the existing part. Returns "" on an error.
std::string resolved(const std::string& path) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error);
  if (error) return {};
  auto real = std::filesystem::weakly_canonical(absolute, error);
  if (error) return {};
  // "a/" and "a" are one folder.
  if (!real.has_filename()) real = real.parent_path();
  return real.string();
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
