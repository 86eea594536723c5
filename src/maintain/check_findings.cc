// SPDX-License-Identifier: Apache-2.0
#include "maintain/check_findings.h"

#include <utility>

#include "catalog/series_catalog.h"
#include "maintain/owners.h"

namespace varve::maintain {

void CheckFindings::damage(std::string where, const Error& error, const std::string& advice) {
  files_.note(error);
  damage(std::move(where), error.message() + advice);
}

void CheckFindings::damage(std::string where, std::string what, std::vector<std::string> affected) {
  report_.damages.push_back({std::move(where), std::move(what), std::move(affected)});
}

void CheckFindings::note(std::string where, std::string what) {
  report_.notes.push_back({std::move(where), std::move(what)});
}

void CheckFindings::add_lost(SeriesId owner, const base::IdRuns& chunks) {
  auto& lost = lost_[catalog::store_of(owner)];
  lost.insert(lost.end(), chunks.runs().begin(), chunks.runs().end());
}

LostChunks CheckFindings::lost_chunks() const {
  LostChunks lost;
  for (const auto& [store, runs] : lost_) {
    auto chunks = base::IdRuns::from(runs);
    if (chunks.size() != 0) lost[store] = std::move(chunks);
  }
  return lost;
}

}  // namespace varve::maintain
