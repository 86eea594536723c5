// SPDX-License-Identifier: Apache-2.0
// Moves chunks to where the policy wants them, in steps that each stand for themselves.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/id_runs.h"
#include "base/ids.h"
#include "layout/arrange_policy.h"
#include "layout/category_layout.h"
#include "layout/chunk_mover.h"
#include "layout/coalescing.h"
#include "layout/stream_order.h"
#include "layout/window.h"
#include "varve/arrange.h"
#include "varve/result.h"

namespace varve::layout {

/// The inputs of an arranger.
struct ArrangerParts {
  CategoryLayout* layout = nullptr;
  StreamWalk newest;           ///< The files of the newest main version.
  std::function<bool()> stop;  ///< Called between steps, and while the order is computed.
  /// Called after each commit, before the first file is cut or removed; may be empty.
  std::function<void()> before_freeing;
  /// Called after each step with its bytes; may wait, to keep to a rate.
  std::function<void(const MoveOutcome&)> after_step;
  std::uint64_t step_bytes_max = 32ULL << 20;  ///< Raw.
  std::uint64_t batch_bytes_max = MoveStep{}.batch_bytes_max;
  std::uint64_t shared_bytes_max = MoveStep{}.shared_bytes_max;
  CoalescingLimits coalescing;
};

/// The state of the active set on disk, for arranging, accounting and tests. Its chunks are those
/// of the newest main version and of the side versions after it, and chunks that these lost.
struct ArrangeView {
  ActiveState state;
  /// Files of the active set that hold chunks for an open version only: volumes that were spliced
  /// back, and files that the arranger wrote for `aside`. The newest version reads none of them.
  std::vector<catalog::SegmentRecord> files_aside;
  /// Lost chunks by death: their last user among the sealed versions. They go to a volume.
  std::map<VersionNumber, base::IdRuns> departing;
  /// Lost chunks by death that an open version may refer to. They go to a file aside.
  std::map<VersionNumber, base::IdRuns> aside;
  base::IdRuns returned;  ///< In a file aside, and the newest version refers to them again.
  /// Files aside all of whose chunks have the same death: they become the volume of that death.
  std::map<SegmentNumber, VersionNumber> settled;
  base::IdRuns unused;  ///< In the active set, and no version refers to them.
  /// The chunks in each file, without `excluded` and `unused`.
  std::map<SegmentNumber, base::IdRuns> chunks_of;
};

/// Returns the state of the active set. Chunks in `excluded` cannot be moved and do not depart.
[[nodiscard]] Result<ArrangeView> view_active_set(const meta::Txn& txn, SeriesId series,
                                                  StoreId store, const ArrangeSettings& settings,
                                                  const base::IdRuns& excluded);

/// Arranges a series once, on one thread. During run(), nothing else may arrange the series, and no
/// version may be deleted (CategoryLayout::Exclusive). Versions may be opened, written and sealed.
class Arranger {
 public:
  Arranger(ArrangerParts parts, const ArrangeSettings& settings)
      : parts_(std::move(parts)),
        settings_(settings),
        policy_(make_arrange_policy(settings)),
        metrics_(parts_.layout->options().metrics) {}

  /// Runs steps until the policy has no work left. Returns false if it was stopped before, for
  /// example for a deletion.
  /// Errors: kNoSpace if the disk is full; as after a crash, at most the last step is lost.
  [[nodiscard]] Result<bool> run();

  [[nodiscard]] const MoveOutcome& done() const { return done_; }

 private:
  [[nodiscard]] Result<bool> run_steps();
  [[nodiscard]] Result<bool> work_off(const ArrangeView& view);
  [[nodiscard]] Result<void> drop_unused(const base::IdRuns& unused);
  [[nodiscard]] Result<void> label_base(const ActiveState& state);
  [[nodiscard]] Result<void> settle(const ArrangeView& view);
  [[nodiscard]] Result<bool> depart(const ArrangeView& view);
  /// Coalesces small volumes until none are left, or until stopped.
  [[nodiscard]] Result<void> coalesce();
  [[nodiscard]] Result<bool> rewrite(const RewriteJob& job, const ArrangeView& view);
  /// Moves the chunks in this order, in steps; false if stopped.
  [[nodiscard]] Result<bool> move(const std::vector<base::IdRun>& chunks, MoveStep kind);
  /// Adds a step to done() and to the metrics.
  void count(const MoveOutcome& step);
  enum class Time : std::uint8_t { kWork, kPause };
  /// Adds the time since the last call to the metrics, unless it was a pause.
  void count_time(Time spent);
  [[nodiscard]] bool stopped() const {
    return parts_.layout->make_way() || (parts_.stop && parts_.stop());
  }

  const ArrangerParts parts_;
  const ArrangeSettings settings_;
  const std::unique_ptr<ArrangePolicy> policy_;
  const LayoutMetrics* const metrics_;
  base::IdRuns damaged_;
  std::set<SegmentNumber> coalesced_;  // Those that are still there have damaged chunks.
  MoveOutcome done_;
  std::chrono::steady_clock::time_point counted_to_;
};

}  // namespace varve::layout
