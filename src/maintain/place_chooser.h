// SPDX-License-Identifier: Apache-2.0
// Chooses one place for each chunk. A crash between copying and removing leaves several places.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "base/id_runs.h"
#include "catalog/location_table.h"
#include "format/container.h"
#include "format/data_codecs.h"
#include "maintain/container_scan.h"
#include "store/segment_files.h"
#include "store/segment_store.h"
#include "varve/result.h"

namespace varve::maintain {

/// Returns the location of a part of a run. The run lies within the table of `header`.
[[nodiscard]] catalog::LocationRecord part_of(const catalog::LocationRecord& run,
                                              const base::IdRun& part,
                                              const format::ContainerHeader& header);

/// Returns location runs that contain every chunk of the containers exactly once. If a chunk has
/// several places, prefers a place where the bytes match the chunk's SHA-256. Reads only containers
/// with chunks that several containers have.
[[nodiscard]] std::vector<catalog::LocationRecord> choose_places(
    const format::DataCodecs& codecs, store::SegmentStore& store, StoreId store_id,
    const std::vector<FoundContainer>& containers);

/// Cuts location runs to selected chunks. Reads the header of a container once, if the container's
/// runs follow each other.
class PlaceCutter {
 public:
  /// Lifetime: the arguments outlive the object.
  PlaceCutter(store::SegmentStore& store, const format::ContainerKeys* keys, StoreId store_id,
              const ContainerScan& scan);

  /// Returns the parts of `place` whose chunks are in `used`. Returns `place` itself if the
  /// container's header cannot be read any more.
  [[nodiscard]] std::vector<catalog::LocationRecord> cut(const catalog::LocationRecord& place,
                                                         const base::IdRuns& used);

 private:
  store::SegmentReader reader_;
  const StoreId store_id_;
  std::map<ContainerNumber, const format::ContainerRecord*> records_;
  std::optional<format::ContainerHeader> header_;  // Header of the last container read.
};

}  // namespace varve::maintain
