// SPDX-License-Identifier: Apache-2.0
#include "control/named_version.h"

#include <fmt/core.h>

#include <utility>
#include <vector>

#include "base/nearest_name.h"
#include "varve/version_name.h"

namespace varve::control {

Result<VersionName> split_version_name(const std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) {
    return Error(ErrorCode::kInvalid,
                 fmt::format("\"{}\" names no version; write SERIES/VERSION", text));
  }
  return VersionName{text.substr(0, slash), text.substr(slash + 1)};
}

Result<SeriesInfo> find_series(Repository& repository, const std::string& name) {
  auto series = repository.find_series(name);
  if (!series && series.error().code() == ErrorCode::kNotFound) {
    std::vector<std::string> names;
    if (const auto all = repository.series()) {
      for (const SeriesInfo& one : *all) names.push_back(one.name);
    }
    return Error(ErrorCode::kNotFound, fmt::format("there is no series \"{}\"{}", name,
                                                   base::nearest_name_hint(name, names)));
  }
  return series;
}

Error version_is_open(const std::string& name) {
  return {ErrorCode::kInvalid,
          fmt::format("{} is open: seal it first with `varve seal`, or copy its files from a mount",
                      name)};
}

Result<VersionInfo> find_version(Repository& repository, const VersionName& name) {
  VARVE_TRY_ASSIGN(const SeriesInfo series, find_series(repository, name.series));
  auto version = repository.find_version(series.id, name.version);
  if (!version && version.error().code() == ErrorCode::kNotFound) {
    if (name.version == kLatestName) {
      return Error(ErrorCode::kNotFound,
                   fmt::format("series \"{}\" has no sealed version", name.series));
    }
    std::vector<std::string> names;
    if (const auto all = repository.versions(series.id)) {
      for (const VersionInfo& one : *all) names.push_back(one.name);
    }
    if (const auto open = repository.open_versions(series.id)) {
      for (const VersionInfo& one : *open) {
        if (one.name == name.version) return version_is_open(name.series + "/" + name.version);
        names.push_back(one.name);
      }
    }
    return Error(ErrorCode::kNotFound,
                 fmt::format("there is no version \"{}/{}\"{}", name.series, name.version,
                             base::nearest_name_hint(name.version, names)));
  }
  return version;
}

}  // namespace varve::control
