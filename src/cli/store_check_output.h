// SPDX-License-Identifier: Apache-2.0
// The check of a repository's object store, for the commands that check.
#pragma once

#include <string>

#include "cli/command.h"
#include "varve/replication.h"
#include "varve/result.h"

namespace varve::cli {

/// Checks the object store of a repository, if any. With `reads_all`, reads all objects, otherwise
/// the small objects. Call it before opening the repository: a process can open the state of a
/// store only once at a time. Errors: kInvalid for `reads_all` without a store; errors of
/// RemoteFolder::check().
[[nodiscard]] Result<StoreCheck> check_store_of(const std::string& repository, bool reads_all);

/// Prints the damages and figures of an object store. Returns false if the store is damaged.
[[nodiscard]] bool print_store_check(const StoreCheck& store, bool json, const Context& context);

}  // namespace varve::cli
