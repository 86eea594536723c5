// SPDX-License-Identifier: Apache-2.0
// Writes the tables of the pool's index as runs, merges runs and saves the index.
#include <algorithm>
#include <utility>

#include "base/log.h"
#include "index/exact_pool_index.h"

namespace varve::index {

namespace {

// Returns the chunks of the set below `end`.
base::IdRuns below(const base::IdRuns& ids, ChunkId end) {
  std::vector<base::IdRun> runs;
  for (auto run : ids.runs()) {
    if (run.first >= end) break;
    run.count =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(run.count, end.value - run.first.value));
    runs.push_back(run);
  }
  return base::IdRuns::from(std::move(runs));
}

}  // namespace

void ExactPoolIndex::spill(std::size_t entries) {
  const std::lock_guard files_lock(files_mutex_);
  {
    const std::lock_guard lock(state_mutex_);
    if (has_room(entries)) return;  // Another thread has made room meanwhile.
    freeze_table();
  }
  drop_damaged();
  const auto written = write_frozen(nullptr);
  if (!written) {
    base::log(base::LogLevel::kWarning,
              written.error().message() + "; the pool's index does not find some new chunks again");
  }
  publish();
  const auto merged = files_.set().merge_new();
  if (!merged) {
    base::log(base::LogLevel::kWarning, "merging the pool's index: " + merged.error().message());
  }
  publish();
}

void ExactPoolIndex::freeze_table() {
  frozen_ = std::make_shared<const TagTable>(std::exchange(table_, TagTable()));
  frozen_told_ = told_.take();
}

Result<void> ExactPoolIndex::write_frozen(const base::IdRuns* keep) {
  auto entries = frozen_->sorted();
  if (keep == nullptr) return files_.set().write(entries, frozen_told_);
  std::erase_if(entries, [&](const Entry& entry) {
    return !PoolRuns::is_marker(entry.id()) && !keep->contains(entry.id());
  });
  return files_.set().write(entries, frozen_told_.intersect(*keep));
}

void ExactPoolIndex::take_back_frozen() {
  const std::lock_guard lock(state_mutex_);
  for (const Entry& entry : frozen_->sorted()) {
    const auto newer = table_.find(entry.tag, [](ChunkId) { return true; });
    if (!newer || (PoolRuns::is_marker(*newer) && !PoolRuns::is_marker(entry.id()))) {
      put(entry.tag, entry.id());
    }
  }
  told_.add(frozen_told_);
}

void ExactPoolIndex::publish() {
  const auto sound = files_.set().runs();
  auto list = std::make_shared<RunList>();
  const std::lock_guard lock(state_mutex_);
  std::size_t budget = filter_bytes_max_;
  for (auto run = sound.rbegin(); run != sound.rend(); ++run) {
    const std::size_t bytes = FilteredRun::filter_bytes(**run);
    const bool keeps_filters = bytes <= budget;
    if (keeps_filters) budget -= bytes;
    const auto is_this = [&](const auto& one) { return one->run() == *run; };
    if (std::ranges::any_of(damaged_, is_this)) continue;
    const auto known = std::ranges::find_if(*runs_, is_this);
    if (known != runs_->end() && (*known)->keeps_filters() == keeps_filters) {
      list->push_back(*known);
    } else {
      list->push_back(std::make_shared<FilteredRun>(*run, keeps_filters));
    }
  }
  runs_ = std::move(list);
  frozen_.reset();
  frozen_told_ = {};
  // A cached chunk may be older than the chunk in the new run.
  beside_.clear();
  ++epoch_;
}

void ExactPoolIndex::drop_damaged() {
  {
    const std::lock_guard lock(state_mutex_);
    for (const auto& run : damaged_) files_.set().drop(*run->run());
    damaged_.clear();
  }
  if (files_.set().has_lost()) saved_until_ = {};
  // The opener reads lost chunks from containers, not the index itself.
  static_cast<void>(files_.set().take_lost());
}

Result<base::IdRuns> ExactPoolIndex::kept_from(const PoolChunks& chunks, ChunkId from) const {
  VARVE_TRY_ASSIGN(const auto live, chunks.from(from));
  const std::lock_guard lock(state_mutex_);
  return live.unite(new_.ids()).subtract(forgotten_);
}

Result<void> ExactPoolIndex::save(const PoolChunks& chunks) {
  const std::lock_guard files_lock(files_mutex_);
  drop_damaged();
  ChunkId from = saved_until_;
  base::IdRuns earlier;
  {
    const std::lock_guard lock(state_mutex_);
    freeze_table();
    // Freed chunks may be in any run. Without them, all older chunks of the table are in use.
    if (forgotten_.size() != 0) from = {};
    earlier = below(frozen_told_, from);
  }
  auto written = [&]() -> Result<base::IdRuns> {
    VARVE_TRY_ASSIGN(const auto kept, kept_from(chunks, from));
    auto keep = kept.unite(earlier);
    VARVE_TRY(write_frozen(&keep));
    return keep;
  }();
  if (!written) take_back_frozen();
  publish();
  if (!written) return std::move(written).error();
  // A full disk may have room for the new entries only. A later call merges.
  auto merged = from == ChunkId{} ? files_.set().merge(*written) : Result<void>();
  if (merged) merged = files_.set().merge([&](ChunkId id) { return kept_from(chunks, id); });
  if (!merged) {
    base::log(base::LogLevel::kWarning, "merging the pool's index: " + merged.error().message());
  }
  publish();
  const auto named = files_.set().covered();
  const auto missed = written->subtract(named);
  auto complete_below = chunks.complete_below;
  if (missed.size() != 0) complete_below = std::min(complete_below, missed.select(0).birth());
  if (from != ChunkId{} && files_.set().has_lost()) complete_below = {};
  VARVE_TRY(files_.save(complete_below));
  saved_until_ = ChunkId::make(complete_below, 0);
  const std::lock_guard lock(state_mutex_);
  forgotten_ = forgotten_.intersect(named.unite(told_.ids()));
  return {};
}

ChunkId ExactPoolIndex::saved_until() const {
  const std::lock_guard files_lock(files_mutex_);
  return saved_until_;
}

}  // namespace varve::index
