// SPDX-License-Identifier: Apache-2.0
#include "series/series_parts.h"

namespace varve::series {

Error opened_read_only() { return {ErrorCode::kReadOnly, "the repository is open read-only"}; }

Result<void> SeriesParts::check_writable() const {
  if (options->read_only) return opened_read_only();
  return {};
}

Result<void> SeriesParts::with_reserve(const std::function<Result<void>()>& work) const {
  return space->with_reserve(work);
}

}  // namespace varve::series
