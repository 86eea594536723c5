// SPDX-License-Identifier: Apache-2.0
#include "repo/quarantine_keeper.h"

#include <utility>

#include "base/log.h"
#include "catalog/alias_table.h"
#include "catalog/layout_records.h"
#include "catalog/pool_records.h"
#include "catalog/series_catalog.h"
#include "maintain/lost_files.h"
#include "repo/series_resources.h"
#include "series/pool.h"
#include "series/version_records.h"

namespace varve::repo {

QuarantineKeeper::QuarantineKeeper(RepositoryFolder& folder, SeriesResources& resources,
                                   SeriesTable& series)
    : folder_(folder), resources_(resources), series_(series) {
  // A mount may stay for weeks. The next writer must not wait for its end.
  resources_.damage().watch([this] { record_found(); });
}

// The commit comes first: chunks removed from the record are in quarantine already (O61).
Result<std::uint64_t> QuarantineKeeper::change(const maintain::LostChunks& lost,
                                               const maintain::LostChunks& sound) {
  VARVE_TRY_ASSIGN(const auto changed, maintain::change_quarantine(folder_.catalog, lost, sound));
  if (changed.empty()) return std::uint64_t{0};
  for (const auto& [store, ids] : changed) {
    if (store == kPoolStore) {
      if (auto* const shared = resources_.opened_pool()) VARVE_TRY(shared->note_quarantine());
      continue;
    }
    // Released chunks stay unknown to an open version; the only cost is space.
    const auto damaged = lost.find(store);
    if (damaged == lost.end()) continue;
    VARVE_TRY_ASSIGN(auto* const one, series_.find(static_cast<SeriesId>(store)));
    one->hide(damaged->second);
  }
  series_.write_all_labels();  // The labels of all series have the quarantine of the pool.
  folder_.replication().changed();
  VARVE_TRY_ASSIGN(const auto all, maintain::find_quarantined(folder_.catalog));
  base::log(base::LogLevel::kInfo,
            std::to_string(maintain::count_of(all)) + " damaged chunks are in quarantine");
  return maintain::count_of(changed);
}

Result<std::uint64_t> QuarantineKeeper::settle() {
  VARVE_TRY(folder_.check_writable());
  const std::lock_guard lock(mutex_);
  const auto named = maintain::read_lost_chunks(*folder_.files, folder_.paths.root());
  VARVE_TRY_ASSIGN(const auto known, maintain::find_quarantined(folder_.catalog));
  auto suspects = known;
  for (const auto& [store, ids] : named) suspects[store] = suspects[store].unite(ids);
  if (suspects.empty()) return std::uint64_t{0};
  VARVE_TRY_ASSIGN(
      const auto second,
      maintain::confirm_lost_chunks(folder_.codecs, folder_.catalog, *folder_.files,
                                    folder_.storage->opener(), folder_.paths.root(), suspects));
  VARVE_TRY_ASSIGN(const auto chunks, change(second.lost, second.sound));
  maintain::forget_lost_chunks(*folder_.files, folder_.paths.root(),
                               maintain::without(named, second.undecided));
  return chunks;
}

// If a check or a reader cannot quarantine, the next writer does.
void QuarantineKeeper::settle_recorded() {
  const auto named = maintain::find_lost_chunks(*folder_.files, folder_.paths.root());
  if (!named) {
    base::log(base::LogLevel::kWarning,
              named.error().message() +
                  ": damage found by earlier commands is not known here, so new data "
                  "may refer to damaged chunks; run `varve check --read-data`");
    return;
  }
  if (named->empty()) return;
  const auto done = settle();
  if (done) return;
  base::log(base::LogLevel::kWarning,
            "damaged chunks that a check or a read found are not in quarantine: " +
                done.error().message());
}

// The record of an attached folder does not reach the writer, which is on another machine.
void QuarantineKeeper::record_found() {
  const std::lock_guard lock(record_mutex_);
  auto found = resources_.damage().take();
  if (found.empty() || folder_.is_attached()) return;
  const auto known = maintain::find_quarantined(folder_.catalog);
  if (known) found = maintain::without(found, *known);
  const auto recorded = maintain::record_lost_chunks(*folder_.files, folder_.paths.root(), found);
  if (recorded || std::exchange(has_warned_, true)) return;
  const auto code = recorded.error().code();
  base::log(
      base::LogLevel::kWarning,
      "the damaged chunks cannot be recorded, so new data may refer to them: " +
          (code == ErrorCode::kReadOnly ? folder_.paths.root() + " is mounted read-only"
                                        : recorded.error().message()) +
          "; run `varve check --read-data` as the owner, where the repository can be written");
}

void QuarantineKeeper::keep_found() {
  record_found();
  if (!folder_.options.read_only && !folder_.is_attached()) settle_recorded();
}

// An attached folder's writer is on another machine, and does not see the attached folder's record.
void QuarantineKeeper::keep_damage(const maintain::LostChunks& lost, maintain::CheckEnd end,
                                   bool is_recorded, CheckReport& report) {
  report.lost_chunks = maintain::count_of(lost);
  maintain::LostChunks known;
  maintain::LostChunks sound;  // In quarantine, and found sound.
  if (auto found = maintain::find_quarantined(folder_.catalog)) known = *std::move(found);
  const auto suspects = maintain::without(known, lost);
  if (end.whole >= CheckDepth::kData && !suspects.empty() && !folder_.is_attached()) {
    auto second =
        maintain::confirm_lost_chunks(folder_.codecs, folder_.catalog, *folder_.files,
                                      folder_.storage->opener(), folder_.paths.root(), suspects);
    if (second) sound = std::move(second->sound);
  }
  if (!folder_.is_attached()) end.lost = maintain::without(lost, known);
  report.quarantined = maintain::without(lost, known).empty();
  if (!folder_.options.read_only) {
    const auto changed = change(lost, sound);
    if (changed) {
      report.quarantined = true;
      end.lost.clear();
      sound.clear();
    } else {
      base::log(base::LogLevel::kWarning, changed.error().message());
    }
  }
  const bool recorded = is_recorded && maintain::record_check(*folder_.files, folder_.paths.root(),
                                                              folder_.clock, end);
  report.quarantine_is_due = !sound.empty() || (recorded && !end.lost.empty());
}

// A reader also knows the chunks recorded by checks for the next writer.
Result<base::IdRuns> QuarantineKeeper::lost_chunks(SeriesId series) const {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(folder_.catalog));
  const auto store = catalog::store_of(series);
  VARVE_TRY_ASSIGN(auto own, catalog::find_quarantine(txn, store));
  VARVE_TRY_ASSIGN(auto shared, catalog::find_quarantine(txn, kPoolStore));
  if (folder_.options.read_only && !folder_.is_attached()) {
    auto named = maintain::read_lost_chunks(*folder_.files, folder_.paths.root());
    own = own.unite(named[store]);
    shared = shared.unite(named[kPoolStore]);
  }
  VARVE_TRY_ASSIGN(const auto aliases, catalog::aliases_of(txn, shared));
  return own.unite(shared).unite(aliases);
}

Result<std::vector<VersionNumber>> QuarantineKeeper::versions_with_losses(SeriesId series) const {
  std::vector<VersionNumber> affected;
  VARVE_TRY_ASSIGN(const auto lost, lost_chunks(series));
  if (lost.size() == 0) return affected;
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(folder_.catalog));
  VARVE_TRY_ASSIGN(const auto versions, catalog::list_versions(txn, series));
  for (const auto& version : versions) {
    if (version.state != VersionState::kSealed) continue;
    const auto chunks = catalog::version_chunks(txn, series, version.number);
    if (!chunks || chunks->intersect(lost).size() != 0) affected.push_back(version.number);
  }
  return affected;
}

Result<LostFiles> QuarantineKeeper::lost_files(SeriesId series, VersionNumber number) {
  keep_found();  // A process beside the writer may have found damage since.
  VARVE_TRY_ASSIGN(auto lost, lost_chunks(series));
  if (lost.size() == 0) return LostFiles();
  catalog::VersionRecord record;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(folder_.catalog));
    VARVE_TRY_ASSIGN(const auto found, catalog::find_version(txn, series, number));
    if (!found || found->state != VersionState::kSealed) return series::no_version();
    record = *found;
    const auto chunks = catalog::version_chunks(txn, series, number);
    if (chunks) lost = lost.intersect(*chunks);
  }
  if (lost.size() == 0) return LostFiles();
  catalog::ObjectReader objects(folder_.catalog, series, &resources_.pages());
  return maintain::find_lost_files(objects, record, lost);
}

}  // namespace varve::repo
