// SPDX-License-Identifier: Apache-2.0
// Makes the JSON for the page of `varve web`. Each function bounds the size of the answer.
#pragma once

#include "control/json.h"
#include "varve/repository.h"
#include "varve/result.h"
#include "web/request.h"

namespace varve::cli {

/// Health, checks, sizes and all series with the newest version of each.
[[nodiscard]] Result<control::Json> web_overview(Repository& repository,
                                                 const web::Request& request);
/// Versions of `series`, newest first: those older than the version with the number `below`, if
/// given. None for `below` 0.
[[nodiscard]] Result<control::Json> web_versions(Repository& repository,
                                                 const web::Request& request);
/// The space of each version and category of `series`.
[[nodiscard]] Result<control::Json> web_space(Repository& repository, const web::Request& request);
/// The entries of a directory behind the position `after`. The first answer has the versions before
/// and after the shown version.
[[nodiscard]] Result<control::Json> web_tree(Repository& repository, const web::Request& request);
/// The versions of `series` that have `path`, newest first, with the changes of the path.
[[nodiscard]] Result<control::Json> web_history(Repository& repository,
                                                const web::Request& request);
/// The names that differ between the versions `before` and `after` of `series`, behind the path
/// `behind`.
[[nodiscard]] Result<control::Json> web_changes(Repository& repository,
                                                const web::Request& request);
/// The names in all sealed versions, or in the versions of `series`, that contain `name` or match a
/// `name` with wildcards. A path in several consecutive versions counts once, with the newest
/// version. Continues from `from_series`, `from_version` and `behind`.
[[nodiscard]] Result<control::Json> web_search(Repository& repository, const web::Request& request);
/// The difference of `path` between the versions `before` and `after`.
[[nodiscard]] Result<control::Json> web_diff(Repository& repository, const web::Request& request);

}  // namespace varve::cli
