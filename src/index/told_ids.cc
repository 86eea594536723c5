// SPDX-License-Identifier: Apache-2.0
#include "index/told_ids.h"

#include <algorithm>

namespace varve::index {

void ToldIds::add(const base::IdRun& run) {
  base::append_run(runs_, run);
  if (runs_.size() < join_at_) return;
  runs_ = base::IdRuns::from(std::move(runs_)).runs();
  join_at_ = std::max(kJoinAt, 2 * runs_.size());
}

}  // namespace varve::index
