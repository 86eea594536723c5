// SPDX-License-Identifier: Apache-2.0
// Moves chunks to the places chosen by the policy, in independent steps.
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

struct DeltaPlan;

/// Treatment of files that are only in an object store. docs/decisions/112.
struct EvictedSources {
  /// Returns the evicted files among `files`. Empty if all files are on the disk.
  std::function<Result<std::set<SegmentNumber>>(const std::set<SegmentNumber>& files)> find{};
  /// Returns whether work that downloads evicted files may begin, in an active set of
  /// `active_bytes` stored bytes.
  std::function<bool(std::uint64_t active_bytes)> may_begin{};
  /// Bytes of evicted files to download before chunks of further files are moved.
  std::uint64_t group_bytes_max = ~std::uint64_t{0};
};

/// The inputs of an arranger.
struct ArrangerParts {
  CategoryLayout* layout = nullptr;
  StreamWalk newest;           ///< The files of the newest main version.
  std::function<bool()> stop;  ///< Called between steps, and during the computation of the order.
  /// Called after each commit, before the first file is cut or removed; may be empty.
  std::function<void()> before_freeing;
  /// Called after each step with its bytes; may wait, to keep to a rate.
  std::function<void(const MoveOutcome&)> after_step;
  base::IdRuns lost{};                         ///< Chunks in quarantine, which stay where they are.
  std::uint64_t step_bytes_max = 32ULL << 20;  ///< Raw bytes of a step.
  std::uint64_t batch_bytes_max = MoveStep{}.batch_bytes_max;
  std::uint64_t shared_bytes_max = MoveStep{}.shared_bytes_max;
  CoalescingLimits coalescing;
  EvictedSources evicted{};
  std::uint64_t spare_bytes = 0;  ///< See ActiveState::spare_bytes.
};

/// The state of the active set on disk, for arranging, accounting and tests. The active set has the
/// chunks of the newest main version and of later side versions, and chunks lost by these versions.
struct ArrangeView {
  ActiveState state;
  /// Files of the active set with chunks for an open version only: spliced volumes, and files that
  /// the arranger wrote for `aside`. The newest version reads none of them.
  std::vector<catalog::SegmentRecord> files_aside;
  /// Lost chunks by death: the last user among the sealed versions. The arranger moves them to a
  /// volume.
  std::map<VersionNumber, base::IdRuns> departing;
  /// Lost chunks by death that an open version may refer to. The arranger moves them to a file
  /// aside.
  std::map<VersionNumber, base::IdRuns> aside;
  base::IdRuns returned;  ///< Chunks in a file aside to which the newest version refers again.
  /// Files aside without a chunk of the newest version: they become volumes of the highest death.
  std::map<SegmentNumber, VersionNumber> settled;
  base::IdRuns unused;  ///< Chunks in the active set to which no version refers.
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

  /// Runs steps until the policy has no work left. Returns false if stopped before, for example for
  /// a deletion.
  /// Errors: kNoSpace if the disk is full; as after a crash, at most the last step is lost.
  [[nodiscard]] Result<bool> run();

  [[nodiscard]] const MoveOutcome& done() const { return done_; }
  /// Returns the stored bytes of the active set. Valid after run(), where files can be evicted.
  [[nodiscard]] std::uint64_t active_bytes() const { return active_bytes_; }
  /// Returns whether run() left work because downloads of files are not allowed yet.
  [[nodiscard]] bool waits() const { return waits_; }

 private:
  [[nodiscard]] Result<bool> run_steps();
  [[nodiscard]] Result<bool> work_off(const ArrangeView& view);
  [[nodiscard]] Result<void> drop_unused(const base::IdRuns& unused);
  [[nodiscard]] Result<void> label_base(const ActiveState& state);
  [[nodiscard]] Result<void> settle(const ArrangeView& view);
  /// Returns whether lost or returned chunks are moved now.
  [[nodiscard]] bool departs(const ArrangeView& view) const;
  /// Returns the files read by the next steps.
  [[nodiscard]] std::set<SegmentNumber> sources_of(const ArrangeView& view) const;
  /// Returns false, and sets waits_, if evicted files among `files` may not be downloaded yet.
  [[nodiscard]] Result<bool> may_read(const std::set<SegmentNumber>& files);
  [[nodiscard]] Result<bool> may_work_off(const ArrangeView& view);
  /// Divides the chunks of a view into parts whose evicted files fit the cache together.
  [[nodiscard]] std::vector<base::IdRuns> groups_of(const ArrangeView& view) const;
  [[nodiscard]] Result<bool> depart(const ArrangeView& view);
  /// Moves lost chunks, with separate files for each death; false if stopped.
  [[nodiscard]] Result<bool> depart(const std::map<VersionNumber, base::IdRuns>& lost,
                                    const base::IdRuns& group, MoveStep kind);
  /// Coalesces small volumes until none are left, or until stopped.
  [[nodiscard]] Result<void> coalesce();
  /// Compresses the volumes of successive deaths together, instead of coalesce().
  [[nodiscard]] Result<void> coalesce_with_prefixes();
  /// Moves the chunks of a plan, in steps of whole groups; false if stopped.
  [[nodiscard]] Result<bool> move(const DeltaPlan& plan, MoveStep kind);
  [[nodiscard]] bool uses_prefixes() const {
    return settings_.delta != 0 && parts_.layout->codec().compression().codec != Codec::kNone;
  }
  [[nodiscard]] Result<bool> rewrite(const RewriteJob& job, const ArrangeView& view);
  /// Moves the chunks in the given order, in steps; false if stopped.
  [[nodiscard]] Result<bool> move(const std::vector<base::IdRun>& chunks, MoveStep kind);
  /// Sets the members that are the same for all steps.
  void prepare(MoveStep& step) const;
  [[nodiscard]] Result<void> move_step(const MoveStep& step);
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
  base::IdRuns damaged_{parts_.lost};
  std::set<SegmentNumber> coalesced_;  // Coalesced sources; remaining sources have damaged chunks.
  std::set<SegmentNumber> evicted_;    // Sources that are only in the store.
  std::uint64_t active_bytes_ = 0;     // Known where files can be evicted.
  bool downloads_ = false;             // Whether this run may download evicted files.
  bool waits_ = false;
  MoveOutcome done_;
  std::chrono::steady_clock::time_point counted_to_;
};

}  // namespace varve::layout
