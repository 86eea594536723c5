// SPDX-License-Identifier: Apache-2.0
#include "cli/named_places.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "cli/command.h"
#include "cli/repository_access.h"
#include "control/named_version.h"
#include "control/place_folder.h"

namespace varve::cli {
namespace {

std::string from_environment() {
  const char* repository = std::getenv("VARVE_REPO");
  return repository == nullptr ? std::string() : std::string(repository);
}

/// Returns true if `word` is a path in a mount, and then adds the path's place to `named`.
Result<bool> take_mounted(const std::string& word, control::Purpose purpose, NamedPlaces& named) {
  const auto mounted = control::find_mounted(word, purpose);
  if (!mounted) {
    if (mounted.error().code() != ErrorCode::kNotFound) return mounted.error();
    return false;
  }
  if (!named.repository.empty() && named.repository != mounted->repository) {
    return usage_error(word + " is in another repository than the path before it");
  }
  named.repository = mounted->repository;
  const VersionPath place = parse_version_path(mounted->in_repository);
  // The root of a mount means the whole repository.
  if (!place.series.empty()) named.places.push_back(place);
  return true;
}

}  // namespace

bool holds_repository(const std::string& path) {
  return control::names_store(path) || ::access((path + "/varve.repo").c_str(), F_OK) == 0;
}

Result<void> use_folder_of_place(std::string& repository, control::Purpose purpose) {
  VARVE_TRY_ASSIGN(repository, control::folder_of_place(
                                   repository, {.purpose = purpose, .options = options_to_read}));
  return {};
}

std::optional<Error> swapped_words(const std::string& first,
                                   const std::vector<std::string>& others) {
  // Not in a mount: any access below the mount of a stopped daemon hangs.
  const auto is_elsewhere = [](const std::string& word) {
    if (control::names_store(word)) return true;
    const auto mounted = control::find_mounted(word, control::Purpose::kLook);
    return !mounted && mounted.error().code() == ErrorCode::kNotFound;
  };
  if (!is_elsewhere(first) || holds_repository(first)) return std::nullopt;
  for (const std::string& word : others) {
    if (word == first || word.empty() || !is_elsewhere(word) || !holds_repository(word)) continue;
    return usage_error(word + " is the repository, so it comes first, before \"" + first + "\"");
  }
  return std::nullopt;
}

Result<NamedPlaces> find_places(const std::vector<std::string>& words, const PlaceCount& count) {
  NamedPlaces named;
  std::vector<std::string> left(words);
  const auto next = [&] {
    std::string word = std::move(left.front());
    left.erase(left.begin());
    return word;
  };
  const std::string environment = from_environment();
  bool& mounted = named.in_mount;
  // Checks for a mount first: any other access below the mount of a stopped daemon hangs.
  if (!left.empty() && !control::names_store(left.front())) {
    VARVE_TRY_ASSIGN(mounted, take_mounted(left.front(), count.purpose, named));
  }
  if (mounted) {
    next();
  } else if (!left.empty() && holds_repository(left.front())) {
    named.repository = next();
  } else if (!environment.empty()) {
    named.repository = environment;
  } else if (const auto swapped = swapped_words(words.empty() ? "" : words.front(), words);
             swapped) {
    return *swapped;
  } else if (left.size() > count.least || (left.size() == 1 && count.least == 0)) {
    named.repository = next();  // Opening the repository reports the error.
  } else {
    return no_repository_named();
  }
  VARVE_TRY(use_folder_of_place(named.repository, count.purpose));
  while (!left.empty() && named.places.size() < count.most) {
    const std::string word = next();
    if (!mounted) {
      named.places.push_back(parse_version_path(word));
      continue;
    }
    VARVE_TRY_ASSIGN(const bool inside, take_mounted(word, count.purpose, named));
    if (!inside) {
      return usage_error(word + " is not in a mount, unlike the path before it");
    }
  }
  if (named.places.size() < count.least) {
    return usage_error(std::string("an argument is missing; the arguments are ") + count.order);
  }
  named.rest = std::move(left);
  return named;
}

void add_series_of(const Instance& instance, NamedPlaces& named) {
  const std::string series = instance.value("VARVE_SERIES");
  if (!series.empty() && named.places.empty()) named.places.push_back({series, "", ""});
}

Result<std::vector<SeriesInfo>> find_series(Repository& repository,
                                            const std::vector<VersionPath>& places) {
  if (places.empty()) return repository.series();
  std::vector<SeriesInfo> all;
  for (const VersionPath& place : places) {
    if (!place.version.empty()) {
      return usage_error("\"" + place.series + "/" + place.version +
                         "\" is not a series; write the name of a series alone");
    }
    VARVE_TRY_ASSIGN(SeriesInfo series, control::find_series(repository, place.series));
    const bool known =
        std::ranges::any_of(all, [&](const SeriesInfo& other) { return other.id == series.id; });
    if (!known) all.push_back(std::move(series));
  }
  return all;
}

Result<VersionInfo> find_whole_version(Repository& repository, const VersionPath& place) {
  std::string text = place.series;
  if (!place.version.empty()) text += "/" + place.version;
  if (!place.path.empty()) text += "/" + place.path;
  VARVE_TRY_ASSIGN(const VersionPath checked, require_version(text, false));
  return find_version(repository, checked);
}

Result<VersionInfo> find_any_version(Repository& repository, control::OpenVersions& open_versions,
                                     const VersionPath& place) {
  if (const auto series = repository.find_series(place.series); series && place.path.empty()) {
    VARVE_TRY_ASSIGN(const auto open, open_versions.of(*series));
    for (const VersionInfo& version : open) {
      if (version.name == place.version) return version;
    }
  }
  return find_whole_version(repository, place);
}

}  // namespace varve::cli
