// SPDX-License-Identifier: Apache-2.0
// Arranges a series, and makes parity of the remaining files.
#include "series/lineage_arranging.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "base/log.h"
#include "catalog/layout_records.h"
#include "catalog/series_catalog.h"
#include "layout/arranger.h"
#include "layout/category_layout.h"
#include "layout/pool_merger.h"
#include "layout/post_pass.h"
#include "layout/series_layout.h"
#include "layout/version_walk.h"
#include "maintain/parity_upkeep.h"
#include "series/eviction_rules.h"
#include "series/lineage_store.h"
#include "series/pool.h"
#include "store/segment_files.h"

namespace varve::series {

namespace {

constexpr auto kCheckEvery = std::chrono::milliseconds(50);

// Work on fewer bytes in an object store waits. docs/decisions/171.
constexpr std::uint64_t kStoredSpareBytes = std::uint64_t{8} << 20;

// A caller that wants a post-pass over any amount of new data also wants downloads for arranging,
// and no work to wait.
bool wants_all(const ArrangeOptions& options) {
  return options.post_pass.any_new || options.post_pass.everything;
}

// Limits the average rate of passing bytes by waiting.
class Throttle {
 public:
  /// `stored_bytes`: the present value of the later argument of give_way(). `stop` ends each wait.
  Throttle(std::uint64_t bytes_per_second, std::uint64_t stored_bytes, std::function<bool()> stop)
      : rate_(bytes_per_second), stop_(std::move(stop)), stored_bytes_(stored_bytes) {}

  void pass(std::uint64_t bytes) {
    if (rate_ == 0) return;
    passed_ += bytes;
    wait_until(begin_ + std::chrono::microseconds(passed_ * 1000 / rate_ * 1000));
  }

  /// Waits as long as the last step took, if chunks have been stored meanwhile: half of the time
  /// belongs to storing, whatever the contended resource. With more seals behind, storing gets a
  /// smaller part.
  void give_way(std::uint64_t stored_bytes, std::uint64_t seals_behind) {
    const auto now = Clock::now();
    const auto parts = static_cast<Clock::rep>(std::clamp<std::uint64_t>(seals_behind, 1, 64));
    if (stored_bytes != stored_bytes_) wait_until(now + (now - step_began_) / parts);
    stored_bytes_ = stored_bytes;
    step_began_ = Clock::now();
  }

  /// Lets a step pass without a wait, and forgets the bytes passed so far.
  void skip(std::uint64_t stored_bytes) {
    begin_ = step_began_ = Clock::now();
    passed_ = 0;
    stored_bytes_ = stored_bytes;
  }

 private:
  using Clock = std::chrono::steady_clock;
  void wait_until(Clock::time_point due) const {
    while (Clock::now() < due && !stop_()) {
      std::this_thread::sleep_for(std::min<Clock::duration>(due - Clock::now(), kCheckEvery));
    }
  }

  const std::uint64_t rate_;
  const std::function<bool()> stop_;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point step_began_ = begin_;
  std::uint64_t passed_ = 0;
  std::uint64_t stored_bytes_;
};

// Returns the newest main version, or the newest sealed version if there are only side versions.
Result<std::optional<catalog::VersionRecord>> newest_to_arrange(const meta::Txn& txn,
                                                                SeriesId series) {
  std::optional<VersionNumber> newest;
  layout::VersionWalk walk(txn, series);
  while (true) {
    VARVE_TRY_ASSIGN(const auto version, walk.next());
    if (!version) break;
    if (!version->sealed || (newest && version->side)) continue;
    newest = version->number;
    if (!version->side) break;
  }
  if (!newest) return std::optional<catalog::VersionRecord>();
  return catalog::find_version(txn, series, *newest);
}

}  // namespace

Result<bool> LineageArranging::arrange(const ArrangeOptions& options, Pace pace,
                                       ArrangeProgress& done) {
  const bool background = pace == Pace::kBackground;
  const auto stop = [&] {
    return options.stop.stop_requested() || store_.layout->make_way() ||
           (background && parts_.host->arrange_urgency(parts_.id).other_series_waits);
  };
  const auto stop_waiting = [&] {
    return stop() || (background && parts_.host->arrange_urgency(parts_.id).seal_waits);
  };
  ArrangeSettings settings;
  std::optional<catalog::VersionRecord> newest;
  base::IdRuns lost;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts_.catalog));
    VARVE_TRY_ASSIGN(settings, catalog::find_arrange_settings(txn));
    VARVE_TRY_ASSIGN(newest, newest_to_arrange(txn, parts_.id));
    VARVE_TRY_ASSIGN(lost, catalog::find_quarantine(txn, parts_.store));
  }
  Throttle throttle(options.bytes_per_second, store_.layout->placed().raw, stop_waiting);
  // The labels get a stamp, which reveals an older catalog, before the first file is removed (O22).
  // On a full disk, writing the stamp may succeed only after the first removal.
  bool is_stamped = true;
  const auto before_freeing = [&] { is_stamped = manifests_.labels().change({}); };
  const auto after_step = [&](const layout::MoveOutcome& step) {
    if (!is_stamped) before_freeing();
    done.bytes_written += step.bytes_written;
    done.bytes_read += step.bytes_read;
    ++done.steps;
    done.damaged += step.damaged_containers;
    if (options.progress) options.progress(done);
    const auto urgency = background ? parts_.host->arrange_urgency(parts_.id) : ArrangeUrgency{};
    if (urgency.seal_waits) {
      throttle.skip(store_.layout->placed().raw);
      return;
    }
    throttle.pass(step.bytes_written + step.bytes_read);
    if (background) throttle.give_way(store_.layout->placed().raw, urgency.seals_behind);
  };
  auto finished = Result<bool>(true);
  if (newest) {
    layout::ArrangerParts parts;
    parts.layout = store_.layout.get();
    parts.newest = layout::walk_tree(*store_.objects, newest->root);
    parts.lost = std::move(lost);
    parts.stop = stop;
    parts.before_freeing = before_freeing;
    parts.after_step = after_step;
    auto* const eviction = parts_.host->eviction();
    if (eviction != nullptr) {
      parts.evicted = evicted_sources(options, newest->number);
      if (!wants_all(options)) parts.spare_bytes = kStoredSpareBytes;
    }
    layout::Arranger arranger(std::move(parts), settings);
    finished = arranger.run();
    if (finished && *finished && !arranger.waits() && eviction != nullptr) {
      eviction->arranged(parts_.id, newest->number, arranger.active_bytes());
    }
  }
  if (finished && *finished) {
    layout::PoolMergerParts parts;
    parts.stop = stop;
    parts.before_freeing = before_freeing;
    parts.after_step = [&](const layout::MoveOutcome& step, const base::IdRuns&) {
      after_step(step);
    };
    finished = merge_pool(std::move(parts));
  }
  if (finished && *finished) {
    layout::PostPassHooks hooks;
    hooks.stop = stop;
    hooks.before_freeing = before_freeing;
    hooks.pass = [&](std::uint64_t bytes) {
      parts_.metrics->layout.compared_bytes.add(bytes);
      done.bytes_read += bytes;
      if (options.progress) options.progress(done);
      throttle.pass(bytes);
    };
    hooks.after_step = [&](const layout::PostPassOutcome& step) {
      parts_.metrics->layout.aliases.add(step.aliases);
      parts_.metrics->layout.aliased_bytes.add(step.aliased_bytes);
      after_step(step.moved);
    };
    hooks.found_damage = [&](std::uint64_t containers) { done.damaged += containers; };
    finished = post_pass(std::move(hooks), options.post_pass);
  }
  return finished;
}

layout::EvictedSources LineageArranging::evicted_sources(const ArrangeOptions& options,
                                                         VersionNumber newest) const {
  layout::EvictedSources evicted;
  auto* const rules = parts_.host->eviction();
  evicted.find = [rules, directory = parts_.directory()](
                     const std::set<SegmentNumber>& files) -> Result<std::set<SegmentNumber>> {
    std::set<SegmentNumber> found;
    for (const auto file : files) {
      VARVE_TRY_ASSIGN(const bool is_evicted,
                       rules->is_evicted(directory + "/" + store::segment_path(file)));
      if (is_evicted) found.insert(file);
    }
    return found;
  };
  const bool downloads = wants_all(options);
  evicted.may_begin = [=, series = parts_.id](std::uint64_t active_bytes) {
    return downloads || rules->may_download(series, newest, active_bytes);
  };
  evicted.group_bytes_max = rules->bytes_at_once();
  return evicted;
}

// A deletion in any series leaves work in the pool, done by the next series being arranged.
Result<bool> LineageArranging::merge_pool(layout::PoolMergerParts parts) const {
  VARVE_TRY_ASSIGN(const bool is_due, pool_merging_is_due(*parts_.catalog));
  if (!is_due) return true;
  VARVE_TRY_ASSIGN(auto* const pool, parts_.host->pool());
  return pool->merge(std::move(parts));
}

// As merging, the pass is work of the whole pool. A repository without a pool has none.
Result<bool> LineageArranging::post_pass(layout::PostPassHooks hooks,
                                         const PostPassOptions& options) const {
  if (parts_.host->opened_pool() == nullptr) {
    VARVE_TRY_ASSIGN(const bool has_any, pool_has_containers(*parts_.catalog));
    if (!has_any) return true;
  }
  VARVE_TRY_ASSIGN(auto* const pool, parts_.host->pool());
  VARVE_TRY_ASSIGN(const bool is_due, pool->post_pass_is_due(options));
  if (!is_due) return true;
  hooks.require_aliases = [this] { return parts_.host->require_aliases(); };
  return pool->post_pass(options, hooks);
}

Result<bool> LineageArranging::protect(const ArrangeOptions& options, ArrangeProgress& done) {
  const std::lock_guard alone(parity_mutex_);
  Throttle throttle(options.bytes_per_second, 0, [&] { return options.stop.stop_requested(); });
  const auto pass = [&](std::uint64_t bytes) {
    throttle.pass(bytes);
    if (options.progress) options.progress(done);
    return !options.stop.stop_requested();
  };
  VARVE_TRY_ASSIGN(const auto kept,
                   maintain::keep_parity(*parts_.catalog, *store_.segments, parts_.id, pass));
  done.bytes_read += kept.bytes_read;
  done.bytes_written += kept.bytes_written;
  auto* const pool = parts_.host->opened_pool();
  if (!kept.finished || pool == nullptr) return kept.finished;
  VARVE_TRY_ASSIGN(const auto shared, pool->keep_parity(pass));
  done.bytes_read += shared.bytes_read;
  done.bytes_written += shared.bytes_written;
  return shared.finished;
}

}  // namespace varve::series
