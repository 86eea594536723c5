// SPDX-License-Identifier: Apache-2.0
// Deletes versions. The forecast and the deletion use the same plan.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "base/log.h"
#include "catalog/clock_record.h"
#include "catalog/layout_records.h"
#include "repo/repository_impl.h"

namespace varve::repo {

namespace {

using Exclusive = layout::CategoryLayout::Exclusive;

std::vector<VersionNumber> numbers_of(const std::vector<catalog::VersionRecord>& records) {
  std::vector<VersionNumber> numbers;
  for (const auto& record : records) numbers.push_back(record.number);
  return numbers;
}

}  // namespace

// Returns the records in ascending number, each once.
Result<std::vector<catalog::VersionRecord>> RepositoryImpl::records_to_delete(
    SeriesId series, const std::vector<VersionNumber>& numbers) {
  auto wanted = numbers;
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  std::vector<catalog::VersionRecord> records;
  for (const auto number : wanted) {
    VARVE_TRY_ASSIGN(auto record, version_record(series, number));
    if (record.state != VersionState::kSealed) {
      return Error(ErrorCode::kInvalid, record.name + " is open; abandon it instead", EINVAL);
    }
    records.push_back(std::move(record));
  }
  return records;
}

Result<std::optional<Error>> RepositoryImpl::holder_of(const catalog::VersionRecord& record,
                                                       const DeletionOptions& options) {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  VARVE_TRY_ASSIGN(auto lock, lock_of(txn, record, options.force_clock));
  if (lock) return lock;
  VARVE_TRY_ASSIGN(const auto all, catalog::list_versions(txn, record.series));
  for (const auto& other : all) {
    if (other.state == VersionState::kOpen && other.base == record.number) {
      return std::optional(Error(
          ErrorCode::kBusy, other.name + " is based on " + record.name + "; seal it first", EBUSY));
    }
  }
  return std::optional<Error>();
}

Result<DeletionForecast> RepositoryImpl::forecast(const layout::DeletionPlan& plan,
                                                  const std::vector<catalog::VersionRecord>& gone,
                                                  std::optional<VersionNumber>& snapshot) {
  DeletionForecast forecast;
  forecast.versions = numbers_of(gone);
  forecast.freed_bytes = plan.ledger.freed_bytes();
  forecast.dead_bytes =
      static_cast<std::uint64_t>(std::max<std::int64_t>(plan.ledger.dead_bytes(), 0));
  forecast.chunks = plan.chunks;
  forecast.chunk_bytes = plan.chunk_bytes;
  // Only the newest version has a snapshot of the index.
  for (const auto& record : gone) {
    const auto path =
        series_directory(record.series) + "/" + index::NeighbourIndex::snapshot_name(record.number);
    VARVE_TRY_ASSIGN(const bool present, files_->exists(path));
    if (!present) continue;
    VARVE_TRY_ASSIGN(const auto bytes, files_->tree_bytes(path));
    forecast.freed_bytes += bytes;
    snapshot = record.number;
  }
  if (gone.empty()) return forecast;
  const auto series = gone.front().series;
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  VARVE_TRY_ASSIGN(const auto open, open_record_after(txn, series, plan));
  VARVE_TRY_ASSIGN(const auto manifests, dead_manifests(series, gone, open));
  forecast.freed_bytes += manifests.bytes;
  if (plan.waiting.size() == 0) return forecast;
  VARVE_TRY_ASSIGN(forecast.waiting_bytes, layout::estimate_bytes(txn, series, plan.waiting));
  VARVE_TRY_ASSIGN(const auto records, catalog::list_versions(txn, series));
  for (const auto& record : records) {
    if (record.state == VersionState::kOpen) forecast.waiting_for = record.name;
  }
  return forecast;
}

Result<DeletionForecast> RepositoryImpl::forecast_deletion(
    SeriesId series, const std::vector<VersionNumber>& numbers, const DeletionOptions& options) {
  VARVE_TRY_ASSIGN(auto* memory, state(series));
  const std::lock_guard lock(memory->mutex);
  VARVE_TRY_ASSIGN(auto gone, records_to_delete(series, numbers));
  std::vector<HeldVersion> held;
  if (options.skip_held) {
    const auto has_files = [&](const catalog::VersionRecord& record) {
      return !options.force && open_files(*memory, record.number)->any();
    };
    VARVE_TRY_ASSIGN(held, leave_out_held(gone, options, has_files));
  }
  const Exclusive exclusive(*memory->layout, Exclusive::For::kDeleting);
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  const auto hold = open_hold(*memory, series, nullptr);
  VARVE_TRY_ASSIGN(const auto plan,
                   layout::plan_deletion(*memory->layout, txn, numbers_of(gone), hold));
  std::optional<VersionNumber> snapshot;
  VARVE_TRY_ASSIGN(auto outcome, forecast(plan, gone, snapshot));
  outcome.held = std::move(held);
  return outcome;
}

Result<std::vector<HeldVersion>> RepositoryImpl::leave_out_held(
    std::vector<catalog::VersionRecord>& gone, const DeletionOptions& options,
    const std::function<bool(const catalog::VersionRecord&)>& has_files) {
  std::vector<HeldVersion> held;
  std::vector<catalog::VersionRecord> free;
  for (auto& record : gone) {
    VARVE_TRY_ASSIGN(auto holder, holder_of(record, options));
    if (!holder && has_files(record)) {
      holder = Error(ErrorCode::kBusy, record.name + " has open files", EBUSY);
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

std::shared_ptr<version::OpenFiles> RepositoryImpl::open_files(SeriesState& memory,
                                                               VersionNumber number) {
  const std::lock_guard lock(mutex_);
  auto& count = memory.open_files[number];
  if (!count) count = std::make_shared<version::OpenFiles>();
  return count;
}

Result<DeletionForecast> RepositoryImpl::delete_versions(SeriesId series,
                                                         const std::vector<VersionNumber>& numbers,
                                                         const DeletionOptions& options) {
  VARVE_TRY(check_writable());
  VARVE_TRY_ASSIGN(auto* memory, state(series));
  const std::lock_guard lock(memory->mutex);
  VARVE_TRY_ASSIGN(auto gone, records_to_delete(series, numbers));
  std::vector<std::shared_ptr<version::OpenFiles>> closed;
  const auto reopen = [&] {
    for (const auto& files : closed) files->reopen();
  };
  auto held = leave_out_held(gone, options, [&](const catalog::VersionRecord& record) {
    auto files = open_files(*memory, record.number);
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
  auto deleted = delete_locked(*memory, gone);
  if (!deleted) {
    reopen();
    return deleted;
  }
  deleted->held = *std::move(held);
  {
    const std::lock_guard readers(mutex_);
    for (const auto& record : gone) {
      memory->readers.erase(record.number);
      memory->open_files.erase(record.number);
    }
  }
  arrange_soon(series);
  return deleted;
}

// Follows docs/ORDERING.md O10: one commit removes all references to the deleted data, then the
// space is freed.
Result<DeletionForecast> RepositoryImpl::delete_locked(
    SeriesState& memory, const std::vector<catalog::VersionRecord>& gone) {
  if (gone.empty()) return DeletionForecast{};
  const SeriesId series = gone.front().series;
  const Exclusive exclusive(*memory.layout, Exclusive::For::kDeleting);
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  // O15: first hide the dying chunks from the index, then find those already referred to.
  VARVE_TRY_ASSIGN(const auto dying, layout::dying_chunks(txn, series, numbers_of(gone)));
  const auto hold = open_hold(memory, series, &dying);
  VARVE_TRY_ASSIGN(const auto plan,
                   layout::plan_deletion(*memory.layout, txn, numbers_of(gone), hold));
  VARVE_TRY_ASSIGN(const auto open, open_record_after(txn, series, plan));
  std::optional<VersionNumber> snapshot;
  VARVE_TRY_ASSIGN(const auto outcome, forecast(plan, gone, snapshot));
  VARVE_TRY_ASSIGN(const auto manifests, dead_manifests(series, gone, open));

  // Damage in a tree only costs space in the catalog: objects that may be in use are kept.
  catalog::ObjectSet dead;
  catalog::ObjectSet live;
  VARVE_TRY_ASSIGN(const auto records, catalog::list_versions(txn, series));
  Result<void> walked;
  for (const auto& record : records) {
    const bool goes = std::any_of(gone.begin(), gone.end(),
                                  [&](const auto& other) { return other.number == record.number; });
    if (goes || record.state != VersionState::kSealed || !walked) continue;
    walked = catalog::collect_objects(*memory.objects, record.root.child, {}, live);
  }
  for (const auto& record : gone) {
    if (walked) walked = catalog::collect_objects(*memory.objects, record.root.child, live, dead);
  }
  if (!walked) {
    base::log(base::LogLevel::kWarning, "deleting: " + walked.error().message());
    dead = {};
  }
  VARVE_TRY(with_reserve([&] { return commit_deletion(plan, gone, dead, open); }));
  auto freed = memory.layout->free(plan.ledger.cuts());
  if (snapshot) {
    auto removed = files_->remove(series_directory(series) + "/" +
                                  index::NeighbourIndex::snapshot_name(*snapshot));
    if (freed) freed = std::move(removed);
  }
  drop_manifests(series, manifests);
  // The versions are deleted. The next opening frees the rest.
  if (!freed) base::log(base::LogLevel::kWarning, "deleting: " + freed.error().message());
  space_.keep_reserve();
  return outcome;
}

Result<void> RepositoryImpl::commit_deletion(const layout::DeletionPlan& plan,
                                             const std::vector<catalog::VersionRecord>& gone,
                                             const catalog::ObjectSet& objects,
                                             const OpenChunks& open) {
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog_));
  for (const auto& record : gone) {
    VARVE_TRY(catalog::erase_version(txn, record.series, record.number));
    VARVE_TRY(catalog::erase_retention(txn, record.series, record.number));
  }
  VARVE_TRY(catalog::erase_objects(txn, gone.front().series, objects));
  for (const auto& [number, chunks] : open) {
    VARVE_TRY(catalog::put_version_chunks(txn, gone.front().series, number, chunks));
  }
  VARVE_TRY(plan.ledger.apply(txn));
  return txn.commit();
}

Result<void> RepositoryImpl::lock_version(SeriesId series, VersionNumber number, Timestamp until) {
  VARVE_TRY(check_writable());
  VARVE_TRY_ASSIGN(auto* memory, state(series));
  const std::lock_guard lock(memory->mutex);
  VARVE_TRY_ASSIGN(const auto record, version_record(series, number));
  if (record.state != VersionState::kSealed) {
    return Error(ErrorCode::kInvalid, record.name + " is not sealed yet", EINVAL);
  }
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog_));
  VARVE_TRY_ASSIGN(auto retention, catalog::find_retention(txn, series, number));
  if (until < retention.locked_until) {
    return Error(ErrorCode::kNotPermitted,
                 record.name + " is locked for longer; a lock cannot be made shorter", EPERM);
  }
  retention.locked_until = until;
  VARVE_TRY(catalog::put_retention(txn, series, number, retention));
  VARVE_TRY(catalog::observe_clock(txn, clock_.now()));
  VARVE_TRY(txn.commit());
  sync_labels(series);
  rewrite_manifest(record);
  return {};
}

Result<void> RepositoryImpl::abandon_version(SeriesId series, VersionNumber number, bool force) {
  VARVE_TRY(check_writable());
  VARVE_TRY_ASSIGN(auto* memory, state(series));
  const std::lock_guard lock(memory->mutex);
  VARVE_TRY_ASSIGN(auto record, version_record(series, number));
  if (record.state != VersionState::kOpen) {
    return Error(ErrorCode::kReadOnly, record.name + " is sealed", EROFS);
  }
  VARVE_TRY(resume(*memory, record));
  if (memory->open->writers() != 0) {
    return Error(ErrorCode::kBusy, record.name + " has files open for writing", EBUSY);
  }
  VARVE_TRY_ASSIGN(const bool empty, memory->open->is_empty());
  if (!empty && !force) {
    return Error(ErrorCode::kNotEmpty, record.name + " is not empty", ENOTEMPTY);
  }
  // The deleted contents need no more disk space.
  VARVE_TRY(memory->open->freeze_to_drop());
  auto erased = with_reserve([&]() -> Result<void> {
    VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog_));
    VARVE_TRY(catalog::erase_version(txn, series, number));
    return txn.commit();
  });
  if (!erased) {
    memory->open->thaw();
    return erased;
  }
  sync_labels(series);
  end_open_version(*memory, record);
  const auto freed = with_reserve([&] { return memory->layout->on_delete(number); });
  space_.keep_reserve();
  // The version is gone. The next version of the series frees the rest.
  if (!freed) base::log(base::LogLevel::kWarning, "discarding: " + freed.error().message());
  return {};
}

Result<void> RepositoryImpl::with_reserve(const std::function<Result<void>()>& work) {
  auto done = work();
  if (done || done.error().code() != ErrorCode::kNoSpace) return done;
  // Another program filled the disk. The reserve exists for this case.
  if (space_.give_up_reserve()) done = work();
  return done;
}

}  // namespace varve::repo
