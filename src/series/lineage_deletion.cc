// SPDX-License-Identifier: Apache-2.0
// Deletes versions. The forecast and the deletion use the same plan.
#include "series/lineage_deletion.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "base/log.h"
#include "catalog/birth_table.h"
#include "catalog/deletion_record.h"
#include "catalog/layout_records.h"
#include "catalog/object_set.h"
#include "layout/category_layout.h"
#include "layout/deletion.h"
#include "layout/window.h"
#include "series/index_files.h"
#include "series/lineage_open.h"
#include "series/lineage_store.h"
#include "series/pool_removal.h"
#include "series/readers.h"
#include "series/seal_clock.h"
#include "version/sealed_version.h"

namespace varve::series {

namespace {

using Exclusive = layout::CategoryLayout::Exclusive;

std::vector<VersionNumber> numbers_of(const std::vector<catalog::VersionRecord>& records) {
  std::vector<VersionNumber> numbers;
  for (const auto& record : records) numbers.push_back(record.number);
  return numbers;
}

}  // namespace

// Returns the records in ascending number, each once.
Result<std::vector<catalog::VersionRecord>> LineageDeletion::records_to_delete(
    const std::vector<VersionNumber>& numbers) {
  auto wanted = numbers;
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  std::vector<catalog::VersionRecord> records;
  for (const auto number : wanted) {
    VARVE_TRY_ASSIGN(auto record, records_.find(number));
    if (record.state != VersionState::kSealed) {
      return Error(ErrorCode::kInvalid, record.name + " is open; abandon it instead");
    }
    records.push_back(std::move(record));
  }
  return records;
}

Result<DeletionForecast> LineageDeletion::forecast_plan(
    const layout::DeletionPlan& plan, const std::vector<catalog::VersionRecord>& gone,
    IndexFilesPlan& index) {
  DeletionForecast forecast;
  forecast.versions = numbers_of(gone);
  forecast.freed_bytes = plan.ledger.freed_bytes();
  forecast.dead_bytes = plan.ledger.dead_bytes();
  forecast.chunks = plan.chunks;
  forecast.chunk_bytes = plan.chunk_bytes;
  if (gone.empty()) return forecast;
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts_.catalog));
  VARVE_TRY_ASSIGN(const auto records, catalog::list_versions(txn, parts_.id));
  VARVE_TRY_ASSIGN(index, plan_index_files(parts_, records, gone));
  forecast.freed_bytes += index.freed_bytes;
  VARVE_TRY_ASSIGN(const auto open, open_.record_after(txn, plan));
  VARVE_TRY_ASSIGN(const auto manifests, manifests_.dead(gone, open));
  forecast.freed_bytes += manifests.bytes;
  if (plan.waiting.size() == 0) return forecast;
  VARVE_TRY_ASSIGN(forecast.waiting_bytes, layout::estimate_bytes(txn, parts_.store, plan.waiting));
  for (const auto& record : records) {
    if (record.state != VersionState::kOpen) continue;
    VARVE_TRY_ASSIGN(const auto owner, records_.owner());
    forecast.waiting_for = owner.name + "/" + record.name;
  }
  return forecast;
}

Result<DeletionForecast> LineageDeletion::forecast(const std::vector<VersionNumber>& numbers,
                                                   const DeletionOptions& options) {
  VARVE_TRY_ASSIGN(auto gone, records_to_delete(numbers));
  std::vector<HeldVersion> held;
  if (options.skip_held) {
    const auto has_files = [&](const catalog::VersionRecord& record) {
      return !options.force && readers_.open_files(record.number)->any();
    };
    VARVE_TRY_ASSIGN(held, leave_out_held(gone, options, has_files));
  }
  const Exclusive exclusive(*store_.layout, Exclusive::For::kDeleting);
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts_.catalog));
  const auto hold = open_.hold(nullptr);
  VARVE_TRY_ASSIGN(const auto plan,
                   layout::plan_deletion(*store_.layout, txn, numbers_of(gone), hold));
  VARVE_TRY_ASSIGN(const auto shared,
                   PoolRemoval::forecast(parts_, txn, gone, options.deleted_before));
  IndexFilesPlan index;
  VARVE_TRY_ASSIGN(auto outcome, forecast_plan(plan, gone, index));
  VARVE_TRY(shared.add_to(outcome));
  outcome.held = std::move(held);
  return outcome;
}

Result<std::vector<HeldVersion>> LineageDeletion::leave_out_held(
    std::vector<catalog::VersionRecord>& gone, const DeletionOptions& options,
    const std::function<bool(const catalog::VersionRecord&)>& has_files) {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts_.catalog));
  VARVE_TRY_ASSIGN(const auto all, catalog::list_versions(txn, parts_.id));
  std::map<VersionNumber, std::string> clone_of;
  for (const auto& record : all) {
    if (record.state == VersionState::kOpen) clone_of.try_emplace(record.base, record.name);
  }
  LockWatch locks(parts_, txn);
  std::vector<HeldVersion> held;
  std::vector<catalog::VersionRecord> free;
  for (auto& record : gone) {
    VARVE_TRY_ASSIGN(auto holder, locks.find(record, options.force_clock));
    if (const auto clone = clone_of.find(record.number); !holder && clone != clone_of.end()) {
      holder = Error(ErrorCode::kBusy,
                     clone->second + " is based on " + record.name + "; seal it first");
    }
    if (!holder && has_files(record)) {
      holder = Error(ErrorCode::kBusy, record.name + " has open files");
    }
    if (!holder) {
      free.push_back(std::move(record));
    } else if (options.skip_held) {
      held.push_back({record.number, holder->message()});
    } else {
      return *std::move(holder);
    }
  }
  gone = std::move(free);
  return held;
}

Result<void> LineageDeletion::check(VersionNumber number) {
  VARVE_TRY_ASSIGN(auto gone, records_to_delete({number}));
  VARVE_TRY(leave_out_held(gone, {}, [](const auto&) { return false; }));
  return {};
}

Result<DeletionForecast> LineageDeletion::run(const std::vector<VersionNumber>& numbers,
                                              const DeletionOptions& options) {
  VARVE_TRY_ASSIGN(auto gone, records_to_delete(numbers));
  std::vector<std::shared_ptr<version::OpenFiles>> closed;
  const auto reopen = [&] {
    for (const auto& files : closed) files->reopen();
  };
  auto held = leave_out_held(gone, options, [&](const catalog::VersionRecord& record) {
    auto files = readers_.open_files(record.number);
    if (options.force) {
      files->cut_off();
    } else if (!files->close()) {
      return true;
    }
    closed.push_back(std::move(files));
    return false;
  });
  if (!held) {
    reopen();
    return std::move(held).error();
  }
  auto deleted = delete_records(gone);
  if (!deleted) {
    reopen();
    return deleted;
  }
  deleted->held = *std::move(held);
  readers_.forget_deleted(numbers_of(gone));
  parts_.host->replicate_soon();
  parts_.host->arrange_soon(parts_.id);
  return deleted;
}

// Follows docs/ORDERING.md O10: one commit removes all references to the deleted data, then the
// space is freed.
Result<DeletionForecast> LineageDeletion::delete_records(
    const std::vector<catalog::VersionRecord>& gone) {
  if (gone.empty()) return DeletionForecast{};
  const Exclusive exclusive(*store_.layout, Exclusive::For::kDeleting);
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts_.catalog));
  // O15: first hide the dying chunks from the index, then find dying chunks with references.
  VARVE_TRY_ASSIGN(const auto dying, layout::dying_chunks(txn, parts_.id, numbers_of(gone)));
  const auto hold = open_.hold(&dying);
  VARVE_TRY_ASSIGN(const auto plan,
                   layout::plan_deletion(*store_.layout, txn, numbers_of(gone), hold));
  VARVE_TRY_ASSIGN(const auto open, open_.record_after(txn, plan));
  VARVE_TRY_ASSIGN(auto shared, PoolRemoval::plan(parts_, txn, gone));
  IndexFilesPlan index;
  VARVE_TRY_ASSIGN(auto outcome, forecast_plan(plan, gone, index));
  VARVE_TRY(shared.add_to(outcome));
  VARVE_TRY_ASSIGN(const auto manifests, manifests_.dead(gone, open));

  // Damage in a tree only costs space in the catalog: objects possibly in use are kept.
  VARVE_TRY_ASSIGN(const auto records, catalog::list_versions(txn, parts_.id));
  std::vector<catalog::VersionTree> trees;
  for (const auto& record : records) {
    if (record.state != VersionState::kSealed) continue;
    const bool goes = std::any_of(gone.begin(), gone.end(),
                                  [&](const auto& other) { return other.number == record.number; });
    trees.push_back({record.number, record.root.child, goes});
  }
  catalog::ObjectSet dead;
  const auto walked = catalog::find_dead_objects(*store_.objects, trees, dead);
  if (!walked) {
    base::log(base::LogLevel::kWarning, "deleting: " + walked.error().message());
    dead = {};
  }
  // Without the index of the newest version, the next version rebuilds the index.
  if (const auto prepared = prepare_index_files(parts_, index); !prepared) {
    base::log(base::LogLevel::kWarning, "deleting: " + prepared.error().message());
  }
  VARVE_TRY(parts_.with_reserve([&] { return commit_deletion(plan, shared, gone, dead, open); }));
  // The labels get a stamp, which reveals an older catalog, before the first data file is cut or
  // removed (O22). On a full disk, the labels may come last.
  const bool is_stamped = manifests_.drop(manifests);
  auto freed = store_.layout->free(plan.ledger.cuts());
  for (auto removed : {apply_index_files(parts_, index), shared.free()}) {
    if (freed) freed = std::move(removed);
  }
  if (!is_stamped) manifests_.labels().rewrite();
  // The versions are deleted. The next opening frees the rest.
  if (!freed) base::log(base::LogLevel::kWarning, "deleting: " + freed.error().message());
  parts_.space->keep_reserve();
  return outcome;
}

Result<void> LineageDeletion::commit_deletion(const layout::DeletionPlan& plan,
                                              const PoolRemoval& shared,
                                              const std::vector<catalog::VersionRecord>& gone,
                                              const catalog::ObjectSet& objects,
                                              const OpenChunks& open) {
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(*parts_.catalog));
  catalog::DeletionRecord deletion;
  deletion.labels_stamp = manifests_.labels().stamp();
  for (const auto& record : gone) deletion.sealed[record.number] = record.sealed_at;
  VARVE_TRY(catalog::note_deletion(txn, parts_.id, std::move(deletion)));
  for (const auto& record : gone) {
    VARVE_TRY(catalog::erase_version(txn, parts_.id, record.number));
    VARVE_TRY(catalog::erase_retention(txn, parts_.id, record.number));
  }
  VARVE_TRY(catalog::erase_objects(txn, parts_.id, objects));
  for (const auto& [number, chunks] : open) {
    VARVE_TRY(catalog::put_version_chunks(txn, parts_.id, number, chunks));
  }
  VARVE_TRY(plan.ledger.apply(txn));
  VARVE_TRY(shared.commit(txn));
  std::set<VersionNumber> births;
  for (const auto& record : gone) births.insert(record.number);
  for (const auto* ids : {&objects.pages, &objects.recipes}) {
    for (const auto id : *ids) births.insert(static_cast<VersionNumber>(id >> 32));
  }
  VARVE_TRY(catalog::erase_unused_births(txn, parts_.store, births));
  return txn.commit();
}

}  // namespace varve::series
