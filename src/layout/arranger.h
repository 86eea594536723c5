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

/// How arranging treats files that are only in an object store. docs/decisions/112.
struct EvictedSources {
  /// Returns those of the files that are only in the store. Empty if all files are on the disk.
  std::function<Result<std::set<SegmentNumber>>(const std::set<SegmentNumber>& files)> find{};
  /// Returns whether work that downloads such files may begin, in an active set of `active_bytes`
  /// stored bytes.
  std::function<bool(std::uint64_t active_bytes)> may_begin{};
  /// Bytes of such files that are downloaded before chunks of other ones are moved.
  std::uint64_t group_bytes_max = ~std::uint64_t{0};
};

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
  EvictedSources evicted{};
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
  /// Returns the stored bytes of the active set. Valid after run(), where files can be evicted.
  [[nodiscard]] std::uint64_t active_bytes() const { return active_bytes_; }
  /// Returns whether run() left work because it may not download files yet.
  [[nodiscard]] bool waits() const { return waits_; }

 private:
  [[nodiscard]] Result<bool> run_steps();
  [[nodiscard]] Result<bool> work_off(const ArrangeView& view);
  [[nodiscard]] Result<void> drop_unused(const base::IdRuns& unused);
  [[nodiscard]] Result<void> label_base(const ActiveState& state);
  [[nodiscard]] Result<void> settle(const ArrangeView& view);
  /// Returns whether lost or returned chunks are moved now.
  [[nodiscard]] bool departs(const ArrangeView& view) const;
  /// Returns the files that the next steps read.
  [[nodiscard]] std::set<SegmentNumber> sources_of(const ArrangeView& view) const;
  /// Returns false, and sets waits_, if evicted files among these may not be downloaded yet.
  [[nodiscard]] Result<bool> may_read(const std::set<SegmentNumber>& files);
  [[nodiscard]] Result<bool> may_work_off(const ArrangeView& view);
  /// Divides the chunks of a view into parts whose evicted files fit the cache together.
  [[nodiscard]] std::vector<base::IdRuns> groups_of(const ArrangeView& view) const;
  [[nodiscard]] Result<bool> depart(const ArrangeView& view);
  /// Moves lost chunks, those of each death to files of their own; false if stopped.
  [[nodiscard]] Result<bool> depart(const std::map<VersionNumber, base::IdRuns>& lost,
                                    const base::IdRuns& group, MoveStep kind);
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
  std::set<SegmentNumber> evicted_;    // Sources that are only in the store.
  std::uint64_t active_bytes_ = 0;     // Known where files can be evicted.
  bool downloads_ = false;             // This run may download evicted files.
  bool waits_ = false;
  MoveOutcome done_;
  std::chrono::steady_clock::time_point counted_to_;
};

}  // namespace varve::layout
