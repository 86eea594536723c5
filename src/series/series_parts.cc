// SPDX-License-Identifier: Apache-2.0
#include "series/series_parts.h"

#include "store/folder_store.h"

namespace varve::series {

Error opened_read_only() { return {ErrorCode::kReadOnly, "the repository is open read-only"}; }

std::unique_ptr<store::SegmentStore> open_segments(const OpenSegments& others,
                                                   io::FileSystem& files,
                                                   const std::string& folder) {
  // The client of an object store repeats its requests itself.
  if (auto found = others ? others(folder) : nullptr) return found;
  return std::make_unique<store::FolderStore>(files, folder);
}

Result<void> SeriesParts::check_writable() const {
  if (options->read_only) return opened_read_only();
  return {};
}

Result<void> SeriesParts::with_reserve(const std::function<Result<void>()>& work) const {
  return space->with_reserve(work);
}

}  // namespace varve::series
