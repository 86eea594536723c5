// SPDX-License-Identifier: Apache-2.0
#include "store/container_writer_options.h"

#include <algorithm>

#include "format/container.h"
#include "store/segment_files.h"

namespace varve::store {

namespace {
constexpr std::size_t kContainerRawBytesMax = 16U << 20;
}  // namespace

// Well below the bound of append(), which would otherwise wait forever: nothing else writes a
// partly filled container.
std::size_t ContainerWriterOptions::container_raw_bytes_max() const {
  if (!readable) return kContainerRawBytesMax;  // Packed frames do not wait.
  return std::min(kContainerRawBytesMax, waiting_bytes_max / 4 * 3);
}

std::uint64_t ContainerWriterOptions::container_bytes_max() const {
  if (segment_bytes_max == 0) return format::kContainerBytesMax;
  return std::clamp<std::uint64_t>(segment_bytes_max, kArrangedSegmentBytesMin,
                                   format::kContainerBytesMax);
}

}  // namespace varve::store
