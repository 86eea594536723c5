// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "maintain/repair_scope.h"
#include "meta/lmdb.h"
#include "varve/result.h"

namespace varve::maintain {

/// The faults of a readable catalog, with the affected files.
struct CatalogFaults {
  std::vector<std::string> faults;      ///< Faults that a rebuild may repair.
  std::vector<std::string> lost_parts;  ///< Parts of versions missing from all manifests.
};
/// Finds the faults of a catalog. Errors: the errors of Checker::run().
[[nodiscard]] Result<CatalogFaults> find_catalog_faults(const RepairScope& scope,
                                                        const meta::Env& catalog);

/// Returns the message of an error that shows damage. Any further error is the error of the
/// function: a temporary error is no fault of the catalog.
[[nodiscard]] Result<std::optional<std::string>> fault_from(const Error& error);

}  // namespace varve::maintain
