// SPDX-License-Identifier: Apache-2.0
// Files of programs beside the versions of a series.
#include "repo/beside_table.h"
#include "repo/repository_impl.h"

namespace varve::repo {

Result<std::shared_ptr<BesideFiles>> RepositoryImpl::beside(SeriesId series) {
  VARVE_TRY(find(series));
  const std::lock_guard lock(mutex_);
  auto& table = beside_[series];
  if (table == nullptr) {
    table =
        std::make_shared<BesideTable>(BesideTable::Place{.files = *folder_.files,
                                                         .clock = folder_.clock,
                                                         .series = series,
                                                         .directory = folder_.paths.series(series),
                                                         .read_only = folder_.options.read_only});
  }
  return std::shared_ptr<BesideFiles>(table);
}

}  // namespace varve::repo
