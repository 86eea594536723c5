// SPDX-License-Identifier: Apache-2.0
// Parts of requests to `varve web`, and values of its answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "control/json.h"
#include "varve/browse.h"
#include "varve/repository.h"
#include "varve/result.h"
#include "web/request.h"

namespace varve::cli {

/// Returns a number of the query.
/// Errors: kInvalid if the number is missing, malformed or above `most`.
[[nodiscard]] Result<std::uint64_t> web_number(const web::Request& request, const std::string& name,
                                               std::uint64_t most);
/// Returns the series with the query's number `series`.
/// Errors: kInvalid, kNotFound.
[[nodiscard]] Result<SeriesInfo> web_series(Repository& repository, const web::Request& request);
/// Returns `path` of the query without slashes at the ends or in a row.
[[nodiscard]] std::string web_path(const web::Request& request);

/// The version and path named by a request: `series` and `version` are numbers, and `path` is a
/// path.
struct WebPlace {
  std::shared_ptr<VersionReader> reader;
  std::string path;  ///< Without slashes at the ends.
  SealedEntry entry;
};
/// Errors: kInvalid if a part of the query is missing or no number; kNotFound.
[[nodiscard]] Result<WebPlace> find_web_place(Repository& repository, const web::Request& request);

/// Returns the sealed versions of a series, newest first in the order of is_newer().
[[nodiscard]] Result<std::vector<VersionInfo>> sealed_versions(Repository& repository,
                                                               SeriesId series);
/// Returns the index of the version `number` in `versions`, where a list continues.
/// Errors: kNotFound if the version was deleted meanwhile.
[[nodiscard]] Result<std::size_t> index_of(const std::vector<VersionInfo>& versions,
                                           std::uint64_t number);
[[nodiscard]] control::Json version_value(const VersionInfo& version);
/// `name` is the last component of the entry's path.
[[nodiscard]] control::Json entry_value(std::string_view name, const SealedEntry& entry);
/// Returns an entry of a list of paths, shown and linked by the page.
[[nodiscard]] control::Json found_value(const std::string& path, const SealedEntry& entry);
/// Sets `behind` to the path where the next request continues a list. A path too long for a request
/// sets `cut`.
void put_place_to_go_on(control::Json& object, const std::string& path);

/// Approximate limit of names visited for an answer.
inline constexpr std::uint64_t kWebNamesMax = 100'000;
/// Approximate limit of bytes of paths in an answer.
inline constexpr std::size_t kWebPathBytesMax = std::size_t{1} << 18;

/// Returns a path with each component in the form of percent_encode().
[[nodiscard]] std::string raw_path(std::string_view path);

}  // namespace varve::cli
