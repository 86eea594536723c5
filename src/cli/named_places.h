// SPDX-License-Identifier: Apache-2.0
// Finds the repository, series and versions named by the words of a command line.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cli/instance.h"
#include "cli/version_path.h"
#include "control/mounted_path.h"
#include "control/open_versions.h"
#include "varve/repository.h"
#include "varve/result.h"

namespace varve::cli {

/// Returns true if `path` is a folder with a repository, even a damaged one, or a place in an
/// object store.
[[nodiscard]] bool holds_repository(const std::string& path);

/// Replaces a place in an object store by the local folder attached to the place. With kLook,
/// attaches a new folder if needed. Errors: the errors of control::folder_of_place().
[[nodiscard]] Result<void> use_folder_of_place(std::string& repository, control::Purpose purpose);

/// Returns the error for a command line with the repository after the first word: `first` is
/// neither a repository nor a mount of a repository, and another word is a repository.
[[nodiscard]] std::optional<Error> swapped_words(const std::string& first,
                                                 const std::vector<std::string>& others);

struct NamedPlaces {
  std::string repository;
  std::vector<VersionPath> places;
  bool in_mount = false;          ///< The words were paths in a mount.
  std::vector<std::string> rest;  ///< Words after the places.
};

/// Finds the places named by the words. The words come as REPO PLACE…, as PLACE… of the repository
/// in VARVE_REPO, or as paths in a mount. REPO may be a place in an object store. At least `least`
/// places are needed; words after the first `most` places are the rest. Errors: kInvalid if the
/// places are in two repositories; otherwise as control::find_mounted().
struct PlaceCount {
  std::size_t least = 0;
  std::size_t most = static_cast<std::size_t>(-1);
  control::Purpose purpose = control::Purpose::kLook;
  const char* order = "REPO SERIES/VERSION";  ///< The words of the command, for messages.
};
[[nodiscard]] Result<NamedPlaces> find_places(const std::vector<std::string>& words,
                                              const PlaceCount& count);

/// Adds the series of an instance if no place is named.
void add_series_of(const Instance& instance, NamedPlaces& named);

/// Returns the named series, each once; all series if no place is named.
/// Errors: kInvalid if a place names a version.
[[nodiscard]] Result<std::vector<SeriesInfo>> find_series(Repository& repository,
                                                          const std::vector<VersionPath>& places);

/// Returns the named version, sealed or open.
/// Errors: kInvalid unless `place` is SERIES/VERSION.
[[nodiscard]] Result<VersionInfo> find_whole_version(Repository& repository,
                                                     const VersionPath& place);
/// Returns the version as find_whole_version() does; an open version with the present sizes.
[[nodiscard]] Result<VersionInfo> find_any_version(Repository& repository,
                                                   control::OpenVersions& open_versions,
                                                   const VersionPath& place);

}  // namespace varve::cli
