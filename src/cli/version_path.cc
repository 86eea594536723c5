// SPDX-License-Identifier: Apache-2.0
#include "cli/version_path.h"

#include <algorithm>
#include <utility>

#include "cli/command.h"
#include "control/named_version.h"
#include "varve/version_name.h"

namespace varve::cli {
namespace {

std::string take_component(std::string_view& rest) {
  rest.remove_prefix(std::min(rest.find_first_not_of('/'), rest.size()));
  const std::size_t length = std::min(rest.find('/'), rest.size());
  std::string component(rest.substr(0, length));
  rest.remove_prefix(length);
  return component;
}

}  // namespace

VersionPath parse_version_path(std::string_view text) {
  VersionPath path;
  path.series = take_component(text);
  path.version = take_component(text);
  for (std::string part = take_component(text); !part.empty(); part = take_component(text)) {
    if (!path.path.empty()) path.path += '/';
    path.path += part;
  }
  return path;
}

Result<VersionPath> require_version(std::string_view text, bool path_allowed) {
  VersionPath path = parse_version_path(text);
  if (path.version.empty()) {
    return usage_error("\"" + std::string(text) +
                       "\" names no version; write SERIES/VERSION, such as " +
                       (path.series.empty() ? "laptop" : path.series) + "/2027-01-31");
  }
  if (!path.path.empty() && !path_allowed) {
    return usage_error("\"" + std::string(text) +
                       "\" has a path after the version; write SERIES/VERSION");
  }
  return path;
}

Result<void> check_new_names(const VersionPath& path, VersionState state) {
  auto checked = check_series_name(path.series);
  if (checked && !path.version.empty()) checked = check_version_name(path.version, state);
  if (!checked) {
    const std::string name = path.version.empty() ? path.series : path.series + "/" + path.version;
    return usage_error("\"" + name + "\": " + checked.error().message());
  }
  return {};
}

Result<VersionInfo> find_version(Repository& repository, const VersionPath& path) {
  return control::find_version(repository, {path.series, path.version});
}

}  // namespace varve::cli
