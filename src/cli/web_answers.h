// SPDX-License-Identifier: Apache-2.0
// Makes the JSON from which `varve web` draws its page. Each function bounds its answer.
#pragma once

#include "control/json.h"
#include "varve/repository.h"
#include "varve/result.h"
#include "web/request.h"

namespace varve::cli {

/// Health, checks, sizes and all series with their newest version.
[[nodiscard]] Result<control::Json> web_overview(Repository& repository,
                                                 const web::Request& request);
/// Versions of `series`, newest first, below the number `below`.
[[nodiscard]] Result<control::Json> web_versions(Repository& repository,
                                                 const web::Request& request);
/// The space of each version and category of `series`.
[[nodiscard]] Result<control::Json> web_space(Repository& repository, const web::Request& request);
/// The entries of a directory behind the position `after`. The first answer has the versions before
/// and after this one.
[[nodiscard]] Result<control::Json> web_tree(Repository& repository, const web::Request& request);
/// The versions of `series` that have `path`, newest first, and where it changed.
[[nodiscard]] Result<control::Json> web_history(Repository& repository,
                                                const web::Request& request);
/// The names that differ between the versions `before` and `after` of `series`, behind the path
/// `behind`.
[[nodiscard]] Result<control::Json> web_changes(Repository& repository,
                                                const web::Request& request);
/// The names that contain `name`, or match it if it has wildcards, in all sealed versions, or in
/// those of `series`. Each path counts once for versions in a row that have it, with the newest.
/// Goes on from `from_series`, `from_version` and `behind`.
[[nodiscard]] Result<control::Json> web_search(Repository& repository, const web::Request& request);
/// The difference of `path` between the versions `before` and `after`.
[[nodiscard]] Result<control::Json> web_diff(Repository& repository, const web::Request& request);

}  // namespace varve::cli
