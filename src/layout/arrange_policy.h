// SPDX-License-Identifier: Apache-2.0
// What to arrange next: the interface and its three kinds. A policy decides by what is on disk
// now, so a crash, or a change of policy, needs no clean-up.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "catalog/layout_records.h"
#include "format/ids.h"
#include "varve/arrange.h"
#include "varve/types.h"

namespace varve::layout {

/// A series' active set, without the files of an open version. Departing chunks count as live.
struct ActiveState {
  std::vector<catalog::SegmentRecord> files;
  std::uint64_t departing_bytes = 0;  ///< Raw bytes of chunks that are to leave it.
  VersionNumber newest{};             ///< Sealed version.
  std::uint32_t versions_behind = 0;  ///< Sealed versions since the base was last written.
};

enum class ChunkOrder : std::uint8_t {
  kStream,  ///< As the newest version's files have them, in tree order.
  kBirth,   ///< By chunk id.
};

/// To write the live chunks of files again as (a part of) one run.
struct RewriteJob {
  std::vector<SegmentNumber> segments;
  catalog::SegmentRole role = catalog::SegmentRole::kBase;
  VersionNumber version{};
  ChunkOrder order = ChunkOrder::kStream;
};

/// Not thread-safe.
class ArrangePolicy {
 public:
  virtual ~ArrangePolicy() = default;
  /// Whether the departing chunks should go to their volumes now.
  [[nodiscard]] virtual bool wants_departure(const ActiveState& state) const = 0;
  /// What to rewrite next, when none is departing or none should; nullopt if all is well.
  [[nodiscard]] virtual std::optional<RewriteJob> next(const ActiveState& state) const = 0;
};

/// The settings must be valid.
[[nodiscard]] std::unique_ptr<ArrangePolicy> make_arrange_policy(const ArrangeSettings& settings);

/// How many runs the files make up.
[[nodiscard]] std::size_t count_runs(const std::vector<catalog::SegmentRecord>& files);

}  // namespace varve::layout
