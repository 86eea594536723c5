// SPDX-License-Identifier: Apache-2.0
// Makes the JSON from which `varve web` draws its page. Each function bounds its answer.
#pragma once

#include <memory>
#include <string>

#include "control/json.h"
#include "varve/browse.h"
#include "varve/repository.h"
#include "varve/result.h"
#include "web/request.h"

namespace varve::cli {

/// The version that a request names by `series` and `version`, which are numbers, and `path`.
struct WebPlace {
  std::shared_ptr<VersionReader> reader;
  std::string path;  ///< Without slashes at its ends.
  SealedEntry entry;
};
/// Errors: kInvalid if a part of the query is missing or no number; kNotFound.
[[nodiscard]] Result<WebPlace> find_web_place(Repository& repository, const web::Request& request);

/// Health, checks, sizes and all series with their newest version.
[[nodiscard]] Result<control::Json> web_overview(Repository& repository,
                                                 const web::Request& request);
/// Versions of `series`, newest first, below the number `below`.
[[nodiscard]] Result<control::Json> web_versions(Repository& repository,
                                                 const web::Request& request);
/// The space of each version and category of `series`.
[[nodiscard]] Result<control::Json> web_space(Repository& repository, const web::Request& request);
/// The entries of a directory behind the position `after`.
[[nodiscard]] Result<control::Json> web_tree(Repository& repository, const web::Request& request);
/// The versions of `series` that have `path`, newest first, and where it changed.
[[nodiscard]] Result<control::Json> web_history(Repository& repository,
                                                const web::Request& request);
/// The difference of `path` between the versions `before` and `after`.
[[nodiscard]] Result<control::Json> web_diff(Repository& repository, const web::Request& request);

}  // namespace varve::cli
