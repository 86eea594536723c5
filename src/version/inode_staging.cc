// SPDX-License-Identifier: Apache-2.0
#include "version/inode_staging.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace varve::version {

void InodeStaging::begin(std::uint64_t new_generation, std::unique_ptr<StagedContent> new_ranges,
                         std::shared_ptr<StagingFile> new_file) {
  VARVE_ASSERT(!is_staged() && new_generation != 0 && new_ranges);
  generation = new_generation;
  ranges = std::move(new_ranges);
  file = std::move(new_file);
}

void InodeStaging::end() {
  generation = 0;
  ranges.reset();
  file.reset();
  lost = false;
}

std::uint64_t InodeStaging::bytes_on_disk() const {
  return std::max(ranges->file_bytes(), file ? file->log_bytes() : 0);
}

}  // namespace varve::version
