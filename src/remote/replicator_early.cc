// SPDX-License-Identifier: Apache-2.0
// Uploads data of open versions early, to leave less work after the seal. docs/decisions/110.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <mutex>

#include "remote/replicator.h"
#include "remote/replicator_round.h"

namespace varve::remote {

Result<std::uint64_t> Replicator::upload_early() {
  const std::lock_guard lock(mutex_);
  if (fenced_) return *fenced_;
  if (!loaded_) VARVE_TRY(load());
  VARVE_TRY(resolve_pending());
  Round round(parts_.uploads);
  VARVE_TRY(finder_.find_early(round));
  VARVE_TRY(check_newest());  // There is time for the check now.
  if (round.files.empty()) return std::uint64_t{0};
  auto uploaded = uploader_.upload_files(round);
  const auto finished = round.uploads.finish();  // After an error, too, to note successful uploads.
  if (uploaded) uploaded = finished;
  std::ranges::move(round.report.damages, std::back_inserter(damages_));
  // kStale: the version was dropped meanwhile.
  if (!uploaded && uploaded.error().code() != ErrorCode::kStale) return uploaded.error();
  return round.report.objects;
}

}  // namespace varve::remote
