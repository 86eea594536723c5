// SPDX-License-Identifier: Apache-2.0
// Checks the aliases of the pool, in the catalog and in the files of aliases, and finds the aliases
// without a catalog.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/id_runs.h"
#include "catalog/alias_table.h"
#include "maintain/birth_check.h"
#include "maintain/container_scan.h"
#include "meta/lmdb.h"
#include "store/alias_files.h"
#include "store/segment_store.h"
#include "varve/result.h"

namespace varve::maintain {

/// Receives a fault of the records of aliases.
using RecordDamage = std::function<void(std::string what)>;
/// Checks that no alias is stored, that no alias leads to another alias, and that the runs do not
/// overlap.
[[nodiscard]] Result<void> check_alias_records(const meta::Txn& txn, const RecordDamage& damage);

/// The faults of the files of aliases. The catalog is sound, so the files can be written again.
struct AliasFileFaults {
  struct Fault {
    std::string where;
    std::string what;
  };
  std::vector<Fault> faults;
  /// Aliases whose target has another content than the file of the alias says.
  base::IdRuns wrong;
  std::uint64_t bytes_read = 0;
};
/// Compares the files of aliases with the catalog, and the contents with the containers' tables. A
/// writer may be active. `containers` is the store of the pool, and `keys` are the keys of the
/// pool's containers, or null.
[[nodiscard]] Result<AliasFileFaults> check_alias_files(const meta::Env& catalog,
                                                        const store::FolderPath& folder,
                                                        store::SegmentStore& containers,
                                                        const format::ContainerKeys* keys);

/// The aliases found in the files of aliases.
struct FoundAliases {
  std::vector<catalog::AliasRecord> records;  ///< With targets in a container. Ascending, apart.
  base::IdRuns named;                         ///< All aliases and targets in the files.
  std::vector<std::string> problems;
};
/// Reads all files of aliases. Leaves out chunks stored in a container, and aliases of another
/// history than `births`. Estimates raw sizes by each run of a container.
[[nodiscard]] Result<FoundAliases> find_aliases(const store::FolderPath& folder,
                                                const ContainerScan& scan,
                                                const StoreBirths& births);

}  // namespace varve::maintain
