// SPDX-License-Identifier: Apache-2.0
#include "maintain/repair_scope.h"

#include <utility>

#include "meta/schema.h"

namespace varve::maintain {

meta::EnvOptions RepairScope::catalog_options(bool read_only) const {
  meta::EnvOptions how;
  how.tables = meta::catalog::kTables;
  how.optional_tables = meta::catalog::kTablesOptional;
  how.read_only = read_only;
  how.must_exist = read_only;
  // A reader of a catalog looks at the lock, unless the calling process holds the lock.
  if (!read_only || !has_lock) how.writer_lock = path() + "/lock";
  how.keys.ring = codecs.keys();
  return how;
}

void RepairScope::add_step(RepairStep::Kind kind, std::string where, std::string what) const {
  steps.push_back({kind, std::move(where), std::move(what)});
}

Result<void> RepairScope::remove_settled() const {
  const auto removed = files.remove(paths.settled());
  if (!removed && removed.error().code() != ErrorCode::kNotFound) return removed.error();
  return removed ? files.sync_directory(path()) : Result<void>();
}

}  // namespace varve::maintain
