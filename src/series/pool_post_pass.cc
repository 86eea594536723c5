// SPDX-License-Identifier: Apache-2.0
// Decides when the post-pass over the pool runs, and which chunks the post-pass leaves unchanged.
#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include "base/log.h"
#include "catalog/alias_table.h"
#include "catalog/location_table.h"
#include "catalog/pool_records.h"
#include "catalog/series_catalog.h"
#include "layout/post_pass.h"
#include "series/pool.h"

namespace varve::series {

namespace {

// bench/post_pass.py: with 1, the newest versions are read with more requests.
constexpr std::uint32_t kRunChunksMin = 4;
// Above the limit, one merged file replaces the files of aliases.
constexpr std::size_t kAliasFilesMax = 4;
// A pass in the background begins once 1/kNewParts of the pool is new.
constexpr std::uint64_t kNewParts = 8;

// Returns the chunks whose place a rewriting policy has chosen: the chunks of the newest version of
// each series with a rewriting policy.
Result<base::IdRuns> rewritten_chunks(const meta::Txn& txn) {
  base::IdRuns kept;
  VARVE_TRY_ASSIGN(const auto all, catalog::list_series(txn));
  for (const auto& series : all) {
    if (series.rewrite == Rewrite::kNone) continue;
    VARVE_TRY_ASSIGN(const auto newest, catalog::newest_sealed_version(txn, series.id));
    if (!newest) continue;
    VARVE_TRY_ASSIGN(const auto chunks, catalog::version_chunks(txn, series.id, newest->number));
    kept = kept.unite(catalog::pool_part(chunks));
  }
  return kept;
}

// Returns the threshold of the runs of each birth: the threshold of the stream of the series using
// the birth. Among several series, the lowest threshold counts.
Result<std::map<VersionNumber, std::uint32_t>> thresholds(const meta::Txn& txn,
                                                          const std::vector<PoolStream>& streams) {
  std::map<VersionNumber, std::uint32_t> of_birth;
  for (const auto& stream : streams) {
    if (stream.series == SeriesId{}) continue;
    VARVE_TRY_ASSIGN(const auto versions, catalog::list_versions(txn, stream.series));
    for (const auto& version : versions) {
      if (version.state != VersionState::kSealed) continue;
      const auto chunks = catalog::version_chunks(txn, stream.series, version.number);
      if (!chunks) continue;  // `varve check` reports the error.
      const auto shared = catalog::pool_part(*chunks);
      for (const auto& run : shared.runs()) {
        const auto known = of_birth.try_emplace(run.first.birth(), stream.run_threshold).first;
        known->second = std::min(known->second, stream.run_threshold);
      }
    }
  }
  return of_birth;
}

}  // namespace

Result<bool> Pool::post_pass_is_due(const PostPassOptions& options) {
  {
    const std::lock_guard alone(merge_mutex_);
    if (post_pass_) return true;
    if (options.everything) {
      VARVE_TRY_ASSIGN(const auto births_end, store_->complete_below());
      return everything_removed_ != births_end;
    }
  }
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*host_.catalog));
  VARVE_TRY_ASSIGN(const auto choice, catalog::find_pool_index(txn));
  if (choice.kind == PoolIndexKind::kExact && !options.any_new) return false;
  VARVE_TRY_ASSIGN(const auto mark, catalog::find_post_pass(txn));
  VARVE_TRY_ASSIGN(const auto fresh, catalog::bytes_to_compare(txn, mark));
  return fresh != 0 && (options.any_new || fresh * kNewParts >= mark.raw_bytes);
}

Result<std::unique_ptr<layout::PostPass>> Pool::begin_post_pass(const PostPassOptions& options) {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*host_.catalog));
  layout::PostPassParts parts;
  parts.pool = store_.get();
  parts.catalog = host_.catalog;
  parts.fingerprinter = host_.fingerprinter;
  parts.folder = {host_.files, host_.paths->pool()};
  VARVE_TRY_ASSIGN(parts.kept, rewritten_chunks(txn));
  parts.lost = quarantined();
  if (options.everything) {
    parts.dead_permille_min = 0;
    parts.run_chunks_min = [](VersionNumber) { return 1; };
    return std::make_unique<layout::PostPass>(std::move(parts));
  }
  VARVE_TRY_ASSIGN(auto of_birth, thresholds(txn, streams()));
  if (options.duplicate_permille_min != 0) parts.dead_permille_min = options.duplicate_permille_min;
  parts.run_chunks_min = [of_birth = std::move(of_birth),
                          fixed = options.run_chunks_min](VersionNumber birth) {
    const auto known = of_birth.find(birth);
    if (fixed != 0) return fixed;
    return known == of_birth.end() ? kRunChunksMin : known->second;
  };
  return std::make_unique<layout::PostPass>(std::move(parts));
}

Result<void> Pool::end_post_pass(const layout::PostPass& pass) {
  VARVE_TRY(layout::tidy_alias_files(*host_.catalog, store_->chunks(),
                                     {host_.files, host_.paths->pool()}, kAliasFilesMax));
  if (!pass.found_all()) return {};
  catalog::PostPassMark mark;
  mark.births_end = pass.births_end();
  mark.next = static_cast<ContainerNumber>(std::numeric_limits<std::uint32_t>::max());
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(*host_.catalog));
  VARVE_TRY(catalog::for_each_container(txn, kPoolStore,
                                        [&](const format::ContainerRecord& record) -> Result<bool> {
                                          mark.raw_bytes += record.raw_bytes;
                                          if (record.birth < mark.births_end) return true;
                                          mark.next = std::min(mark.next, record.number);
                                          return true;
                                        }));
  const auto counters = catalog::find_counters(txn, kPoolStore);
  if (counters) mark.next = std::min(mark.next, counters->next_container);
  VARVE_TRY(catalog::put_post_pass(txn, mark));
  return txn.commit();
}

Result<bool> Pool::post_pass(const PostPassOptions& options, const layout::PostPassHooks& hooks) {
  const std::lock_guard alone(merge_mutex_);
  if (options.everything && !removes_everything_) post_pass_.reset();
  // A pass begun earlier could make the new copy of lost content an alias of the lost copy.
  if (quarantine_changed_.exchange(false)) post_pass_.reset();
  if (!post_pass_) {
    VARVE_TRY_ASSIGN(post_pass_, begin_post_pass(options));
    removes_everything_ = options.everything;
  }
  auto finished = post_pass_->run(hooks);
  if (hooks.found_damage && post_pass_->damaged() != 0) hooks.found_damage(post_pass_->damaged());
  if (finished && *finished) {
    const auto ended = end_post_pass(*post_pass_);
    finished = ended ? Result<bool>(post_pass_->found_all()) : Result<bool>(ended.error());
    if (finished && *finished && removes_everything_) {
      everything_removed_ = post_pass_->births_end();
    }
    post_pass_.reset();
  } else if (!finished && finished.error().code() != ErrorCode::kNoSpace) {
    post_pass_.reset();
  }
  if (!finished) store_->note_left_behind();
  return finished;
}

}  // namespace varve::series
