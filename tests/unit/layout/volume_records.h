// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <map>

#include "base/ids.h"
#include "format/container.h"
#include "history_model.h"

namespace varve::layout {

/// Expects that no chunk of a volume's container has a lower birth than the container's record
/// tells: a deletion takes the container for dead by the record.
inline void expect_no_lower_birth(const format::ContainerHeader& header, VersionNumber birth) {
  for (const auto& chunk : header.chunks) EXPECT_GE(chunk.id.birth(), birth);
}

/// Returns the record of the file of each container.
inline std::map<ContainerNumber, catalog::SegmentRecord> segments_by_container(
    const meta::Txn& txn) {
  std::map<SegmentNumber, catalog::SegmentRecord> segments;
  for (const auto& segment : must(catalog::list_segments(txn, kStore))) {
    segments[segment.segment] = segment;
  }
  std::map<ContainerNumber, catalog::SegmentRecord> segment_of;
  must(catalog::for_each_container(txn, kStore,
                                   [&](const format::ContainerRecord& record) -> Result<bool> {
                                     segment_of[record.number] = segments.at(record.segment);
                                     return true;
                                   }));
  return segment_of;
}

}  // namespace varve::layout
