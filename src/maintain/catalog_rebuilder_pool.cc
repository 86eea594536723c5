// SPDX-License-Identifier: Apache-2.0
// Rebuilds the records of the pool.
#include <algorithm>
#include <cstdint>

#include "catalog/alias_table.h"
#include "catalog/pool_records.h"
#include "maintain/catalog_rebuilder.h"
#include "maintain/owners.h"
#include "maintain/pool_aliases.h"
#include "maintain/pool_recount.h"
#include "maintain/write_batch.h"
#include "store/repository_paths.h"

namespace varve::maintain {

namespace {

using format::ManifestRecord;

// If a birth has several marks, only manifests tell the mark of the repository.
Result<void> note_births_in_manifests(io::FileSystem& files, const format::FrameCodec& codec,
                                      const std::string& repository_path, StoreBirths& births) {
  VARVE_TRY_ASSIGN(const auto all, series_folders(files, repository_path));
  for (const auto series : all) {
    const auto directory = owner_folder(store::RepositoryPaths(repository_path), series);
    VARVE_TRY_ASSIGN(const auto present, list_manifests(files, directory));
    for (const auto& file : present) {
      const auto visit = [&](ManifestRecord what, std::string_view,
                             std::string_view value) -> Result<void> {
        if (what != ManifestRecord::kBirths) return {};
        const auto named = format::decode_births(value);
        if (named) births.note(*named);  // read_manifests() reports unreadable births.
        return {};
      };
      const auto read = read_manifest(files, codec, manifest_path(directory, file.number), visit);
      VARVE_TRY(refuse_unsupported(read));
    }
  }
  return {};
}

}  // namespace

Result<void> CatalogRebuilder::scan_pool() {
  const auto segments = open_store(kPoolOwner);
  auto& store = *segments;
  VARVE_TRY_ASSIGN(pool_.scan, scan(store, kPoolStore));
  const bool has_marks = std::ranges::any_of(
      pool_.scan.containers, [](const FoundContainer& found) { return !found.marks.empty(); });
  if (has_marks) {
    VARVE_TRY(note_births_in_manifests(files_, codecs_.frames(), path_, pool_.births));
  }
  for (const auto& fault : pool_.births.choose(pool_.scan)) {
    VARVE_TRY(leave_out(store.describe(), fault));
  }
  drop_repeated_numbers(pool_.scan, store);
  pool_.runs = runs_by_birth(pool_.scan);
  if (!pool_.scan.unread.empty() || !pool_.scan.repeated.empty() || !whole_) {
    pool_.claims.set_incomplete();
  }
  for (const auto& found : pool_.scan.containers) {
    for (const auto& run : found.runs) pool_.claims.note_birth(run.first.birth());
  }
  return {};
}

// A chunk stored in a container is no alias, whatever a file says.
Result<void> CatalogRebuilder::put_aliases() {
  const store::FolderPath folder{&files_, series_directory(kPoolOwner)};
  VARVE_TRY_ASSIGN(const auto found, find_aliases(folder, pool_.scan, pool_.births));
  for (const auto& what : found.problems) problem(what);
  if (!found.problems.empty()) pool_.claims.set_incomplete();
  if (found.named.size() != 0) pool_.claims.note_birth(found.named.runs().back().first.birth());
  std::vector<base::IdRun> targets;
  WriteBatch batch(catalog_);
  for (const auto& record : found.records) {
    // Unless data is missing, the versions no longer need aliases outside of the wanted chunks.
    const base::IdRun run{record.run.first, record.run.count};
    if (pool_.claims.are_complete() && !pool_.claims.wanted().overlaps(run)) continue;
    constexpr std::size_t kRecordBytes = 64;
    VARVE_TRY_ASSIGN(auto* const txn, batch.txn(kRecordBytes));
    VARVE_TRY(catalog::put_alias(*txn, record));
    targets.push_back(record.targets());
  }
  VARVE_TRY(batch.commit());
  pool_.claims.add(base::IdRuns::from(std::move(targets)));
  return {};
}

Result<void> CatalogRebuilder::put_pool() {
  VARVE_TRY(put_aliases());
  if (!pool_.claims.has_births() && pool_.scan.unread.empty()) return {};
  owner_.reset();
  versions_.clear();
  open_.clear();
  chunks_of_ = {{VersionNumber{1}, pool_.claims.wanted()}};
  whole_ = pool_.claims.are_complete();
  const auto segments = open_store(kPoolOwner);
  auto& store = *segments;
  VARVE_TRY(put_locations(kPoolOwner, store, pool_.scan));
  if (!whole_) pool_.claims.set_incomplete();
  VARVE_TRY(pool_.births.put(catalog_, kPoolStore));
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog_));
  VARVE_TRY(catalog::raise_pool_birth(txn, pool_.claims.last_birth()));
  VARVE_TRY(txn.commit());
  return recount_pool(catalog_, done_, pool_.scan.containers.size());
}

}  // namespace varve::maintain
