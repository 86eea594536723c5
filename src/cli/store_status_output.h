// SPDX-License-Identifier: Apache-2.0
// Prints the state of a repository's object store for `varve status`.
#pragma once

#include <string>
#include <vector>

#include "cli/repository_status.h"

namespace varve::cli {

/// Returns the rows of a table of two columns. The repository is in an object store.
[[nodiscard]] std::vector<std::vector<std::string>> store_rows(const RepositoryStatus& status);
/// Prints the messages `object_store`, `store_ability`, `store_usage` and `store_requests`.
void print_store_status_json(const RepositoryStatus& status);

}  // namespace varve::cli
