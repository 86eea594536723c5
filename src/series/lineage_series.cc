// SPDX-License-Identifier: Apache-2.0
#include "series/lineage_series.h"

#include <sys/stat.h>

#include <utility>

#include "base/log.h"
#include "catalog/clock_record.h"
#include "catalog/layout_records.h"
#include "catalog/object_store.h"
#include "layout/category_layout.h"
#include "layout/series_layout.h"
#include "meta/schema.h"
#include "series/lineage_index.h"
#include "series/lineage_loaded.h"
#include "series/lineage_usage.h"
#include "series/pool.h"
#include "series/usage.h"
#include "store/repository_names.h"
#include "varve/version_name.h"
#include "version/open_version.h"
#include "version/sealed_version.h"

namespace varve::series {

LineageSeries::LineageSeries(const SeriesParts& parts)
    : parts_(parts), records_(*parts.catalog, parts.id), manifests_(parts_) {}

LineageSeries::~LineageSeries() = default;

Result<LineageSeries::Loaded*> LineageSeries::load() {
  const std::lock_guard lock(load_mutex_);
  if (!loaded_) {
    VARVE_TRY(records_.owner());  // Opening makes the folder: not after the series was removed.
    VARVE_TRY_ASSIGN(auto store, LineageStore::open(parts_));
    loaded_ = std::make_unique<Loaded>(parts_, manifests_, readers_, std::move(store));
  }
  return loaded_.get();
}

LineageSeries::Loaded* LineageSeries::loaded() {
  const std::lock_guard lock(load_mutex_);
  return loaded_.get();
}

Result<std::vector<VersionInfo>> LineageSeries::versions() {
  VARVE_TRY_ASSIGN(const auto owner, records_.owner());
  VARVE_TRY_ASSIGN(const auto records, records_.all());
  std::vector<VersionInfo> all;
  for (const auto& record : records) {
    if (parts_.options->read_only && record.state == VersionState::kOpen) continue;
    if (record.unfinished) continue;
    all.push_back(version_info(record, owner.name));
  }
  return all;
}

Result<VersionInfo> LineageSeries::find_version(std::string_view name) {
  if (name == kLatestName) {
    VARVE_TRY_ASSIGN(const auto owner, records_.owner());
    VARVE_TRY_ASSIGN(const auto newest, records_.newest_sealed());
    if (!newest) return no_version();
    if (!newest->name_fault.empty()) {
      return Error(ErrorCode::kCorrupt, "the newest version has no valid name (" +
                                            newest->name_fault + "); Varve shows it as " +
                                            newest->name + ". Run `varve check`");
    }
    return version_info(*newest, owner.name);
  }
  VARVE_TRY_ASSIGN(const auto owner, records_.owner());
  VARVE_TRY_ASSIGN(const auto record, records_.find_named(name));
  if (!record || record->unfinished) return no_version();
  if (parts_.options->read_only && record->state == VersionState::kOpen) return no_version();
  return version_info(*record, owner.name);
}

Result<std::optional<VersionInfo>> LineageSeries::version_to_end(std::string_view name,
                                                                 VersionNumber source) {
  VARVE_TRY(parts_.check_writable());
  VARVE_TRY_ASSIGN(auto* const use, load());
  const std::lock_guard lock(mutex_);
  if (source != VersionNumber{}) {
    VARVE_TRY(use->clones.source(source, name));
  } else {
    VARVE_TRY(use->open.check_may_open(name));
  }
  VARVE_TRY_ASSIGN(const auto records, records_.all());
  for (const auto& record : records) {
    if (record.state != VersionState::kOpen || record.unfinished) continue;
    VARVE_TRY(use->open.check_may_end(record));
    return std::optional(use->open.version()->info());
  }
  return std::optional<VersionInfo>();
}

Result<std::vector<VersionInfo>> LineageSeries::open_versions(OpenSizes sizes) {
  VARVE_TRY_ASSIGN(const auto owner, records_.owner());
  VARVE_TRY_ASSIGN(auto records, records_.all());
  std::vector<VersionInfo> all;
  if (!parts_.has_open_versions) records.clear();
  for (auto& record : records) {
    if (record.state != VersionState::kOpen || record.unfinished) continue;
    if (sizes == OpenSizes::kMeasured) VARVE_TRY(measure_open(record));
    all.push_back(version_info(record, owner.name));
  }
  return all;
}

// Measures an open version for display. Another process may be writing it. Unreadable sizes stay 0.
Result<void> LineageSeries::measure_open(catalog::VersionRecord& record) {
  if (const auto measured = measure_version(parts_, record); !measured) {
    base::log(base::LogLevel::kDebug, measured.error().message());
  }
  VARVE_TRY_ASSIGN(auto* const use, load());
  // A seal or a deletion may hold the mutex for long. Only its holder may open the overlay.
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return {};
  if (use->open.version() && use->open.version()->info().number == record.number) {
    record.entries = use->open.version()->entries();
    return {};
  }
  const auto known = use->open.stored_entries(record);
  if (known) {
    record.entries = *known;
  } else if (record.base != VersionNumber{}) {
    if (const auto base = records_.find(record.base)) record.entries = base->entries;
  }
  return {};
}

Result<void> LineageSeries::end_present_version(Loaded& use) {
  VARVE_TRY_ASSIGN(const auto records, records_.all());
  for (const auto& record : records) {
    if (record.state != VersionState::kOpen) continue;
    if (record.unfinished) {
      VARVE_TRY(use.open.drop_unfinished(record));
      continue;
    }
    VARVE_TRY(use.open.check_may_end(record));
    SealRequest request;
    request.name = record.name;
    auto sealed = use.seal.run(record, request);
    if (!sealed) return std::move(sealed).error();
    base::log(base::LogLevel::kInfo,
              sealed->outcome.info.series_name + "/" + sealed->outcome.info.name +
                  " was sealed, because another version of the series is opened");
  }
  return {};
}

Result<VersionInfo> LineageSeries::open_version(std::string_view name, const NewFile& root) {
  VARVE_TRY(parts_.check_writable());
  VARVE_TRY_ASSIGN(auto* const use, load());
  const std::lock_guard lock(mutex_);
  VARVE_TRY(use->open.check_may_open(name));
  VARVE_TRY(end_present_version(*use));
  catalog::VersionRecord record;
  record.series = parts_.id;
  record.name = name;
  record.root.mode = (root.mode & 07777) | S_IFDIR;
  record.root.uid = root.uid;
  record.root.gid = root.gid;
  record.root.mtime = parts_.clock->now();
  VARVE_TRY_ASSIGN(auto info, use->open.put_new(record));
  VARVE_TRY(use->open.resume(record));
  return info;
}

Result<std::shared_ptr<VersionWriter>> LineageSeries::writer() {
  VARVE_TRY(parts_.check_writable());
  VARVE_TRY_ASSIGN(auto* const use, load());
  const std::lock_guard lock(mutex_);
  if (!use->open.version()) {
    VARVE_TRY_ASSIGN(const auto records, records_.all());
    for (const auto& record : records) {
      if (record.state != VersionState::kOpen || record.unfinished) continue;
      VARVE_TRY(use->open.resume(record));
    }
  }
  if (!use->open.version()) return no_version();
  return std::shared_ptr<VersionWriter>(use->open.version());
}

Result<std::shared_ptr<VersionReader>> LineageSeries::reader(VersionNumber number) {
  VARVE_TRY_ASSIGN(auto* const use, load());
  if (auto known = readers_.find(number)) return std::shared_ptr<VersionReader>(std::move(known));
  VARVE_TRY_ASSIGN(const auto owner, records_.owner());
  VARVE_TRY_ASSIGN(const auto record, records_.find(number));
  if (record.state != VersionState::kSealed) {
    return Error(ErrorCode::kInvalid, record.name + " is not sealed yet");
  }
  parts_.host->on_reader();
  version::SealedVersionParts parts;
  parts.objects = use->store->objects.get();
  parts.source = use->store->all.get();
  parts.read_service = parts_.read_service;
  parts.open_files = readers_.open_files(number);
  parts.on_open = [this](const format::Recipe& recipe) {
    Pool* const pool = parts_.host->opened_pool();
    if (pool != nullptr) pool->note_opened(parts_.id, recipe);
  };
  parts.links = [this, number] { return records_.links(number); };
  auto opened = std::make_shared<version::SealedVersion>(parts, version_info(record, owner.name),
                                                         record.root);
  readers_.add(number, opened);
  return std::shared_ptr<VersionReader>(std::move(opened));
}

Result<void> LineageSeries::rename_version(VersionNumber number, std::string_view new_name) {
  VARVE_TRY(parts_.check_writable());
  VARVE_TRY_ASSIGN(auto* const use, load());
  const std::lock_guard lock(mutex_);
  VARVE_TRY_ASSIGN(auto record, records_.find(number));
  if (is_partial_name(new_name) &&
      (record.state == VersionState::kSealed || !is_partial_name(record.name))) {
    return Error(ErrorCode::kNotPermitted, "a version cannot become partial again");
  }
  if (record.state == VersionState::kOpen && is_partial_name(record.name) &&
      !is_partial_name(new_name)) {
    return Error(ErrorCode::kInvalid, "dropping .partial seals the version");
  }
  if (new_name == record.name) return {};
  VARVE_TRY(records_.check_new_name(new_name));
  record.name = new_name;
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(*parts_.catalog));
  VARVE_TRY(catalog::put_version(txn, record));
  VARVE_TRY(txn.commit());
  manifests_.labels().change({number});
  if (use->open.version() && record.state == VersionState::kOpen)
    use->open.version()->rename_to(record.name);
  readers_.forget(number);  // The next reader() gets the new name.
  if (record.state == VersionState::kSealed) parts_.host->replicate_soon();
  return {};
}

Result<SealOutcome> LineageSeries::seal(VersionNumber number, std::string_view new_name,
                                        SealMode mode, SealWriters writers) {
  VARVE_TRY(parts_.check_writable());
  VARVE_TRY_ASSIGN(auto* const use, load());
  parts_.host->before_seal(parts_.id);
  std::optional<Result<SealResult>> sealed;
  {
    const std::lock_guard lock(mutex_);
    VARVE_TRY_ASSIGN(auto record, records_.find(number));
    if (record.state != VersionState::kOpen) {
      return Error(ErrorCode::kReadOnly, record.name + " is sealed already");
    }
    VARVE_TRY(use->open.resume(record));
    sealed = use->seal.run(std::move(record), {std::string(new_name), mode, writers, true});
  }
  if (!*sealed) return std::move(*sealed).error();
  auto& [outcome, replaced] = **sealed;
  if (replaced) {
    const auto deleted = delete_versions({*replaced}, {});
    if (!deleted) {
      base::log(base::LogLevel::kWarning, outcome.info.name +
                                              " was sealed, but the version that it replaces could "
                                              "not be deleted; that version is now called " +
                                              replaced_name(outcome.info.name, *replaced) + ": " +
                                              deleted.error().message());
    }
  }
  return std::move(outcome);
}

Result<VersionInfo> LineageSeries::clone_version(VersionNumber source, std::string_view name) {
  VARVE_TRY(parts_.check_writable());
  VARVE_TRY_ASSIGN(auto* const use, load());
  const std::lock_guard lock(mutex_);
  VARVE_TRY_ASSIGN(const auto found, use->clones.source(source, name));
  const auto& [from, reopens, own_name] = found;
  VARVE_TRY(end_present_version(*use));
  VARVE_TRY_ASSIGN(const auto newest, records_.newest_sealed());
  if (newest && newest->number != source) {
    return use->clones.copy(from, own_name);
  }
  catalog::VersionRecord record;
  record.series = parts_.id;
  record.name = own_name;
  record.base = source;
  record.replaces = reopens;
  record.root.mode = from.root.mode;
  record.root.uid = from.root.uid;
  record.root.gid = from.root.gid;
  record.root.mtime = from.root.mtime;
  VARVE_TRY_ASSIGN(auto info, use->open.put_new(record));
  VARVE_TRY(use->open.resume(record));
  return info;
}

Result<void> LineageSeries::lock_version(VersionNumber number, Timestamp until) {
  VARVE_TRY(parts_.check_writable());
  const std::lock_guard lock(mutex_);
  VARVE_TRY_ASSIGN(const auto record, records_.find(number));
  if (record.state != VersionState::kSealed) {
    return Error(ErrorCode::kInvalid, record.name + " is not sealed yet");
  }
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(*parts_.catalog));
  VARVE_TRY_ASSIGN(auto retention, catalog::find_retention(txn, parts_.id, number));
  if (until < retention.locked_until) {
    return Error(ErrorCode::kNotPermitted,
                 record.name + " is locked for longer; a lock cannot be made shorter");
  }
  retention.locked_until = until;
  VARVE_TRY(catalog::put_retention(txn, parts_.id, number, retention));
  VARVE_TRY(catalog::observe_clock(txn, parts_.clock->now()));
  VARVE_TRY(txn.commit());
  manifests_.labels().change({number});
  manifests_.rewrite(record);
  parts_.host->replicate_soon();
  return {};
}

Result<void> LineageSeries::abandon_version(VersionNumber number, bool force) {
  VARVE_TRY(parts_.check_writable());
  VARVE_TRY_ASSIGN(auto* const use, load());
  const std::lock_guard lock(mutex_);
  VARVE_TRY_ASSIGN(auto record, records_.find(number));
  if (record.state != VersionState::kOpen) {
    return Error(ErrorCode::kReadOnly, record.name + " is sealed");
  }
  VARVE_TRY(use->open.resume(record));
  if (use->open.version()->writers() != 0) {
    return Error(ErrorCode::kBusy, record.name + " has files open for writing");
  }
  VARVE_TRY_ASSIGN(const bool empty, use->open.version()->is_empty());
  if (!empty && !force) return Error(ErrorCode::kNotEmpty, record.name + " is not empty");
  // The deleted contents need no more disk space.
  VARVE_TRY(use->open.version()->freeze_to_drop());
  auto erased = parts_.with_reserve([&]() -> Result<void> {
    VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(*parts_.catalog));
    VARVE_TRY(catalog::erase_version(txn, parts_.id, number));
    return txn.commit();
  });
  if (!erased) {
    use->open.version()->thaw();
    return erased;
  }
  manifests_.labels().change({number});
  use->open.end(record);
  const auto freed = parts_.with_reserve([&] { return use->store->all->on_delete(number); });
  use->open.end_in_pool(number);
  parts_.space->keep_reserve();
  // The version is gone. The next version of the series frees the rest.
  if (!freed) base::log(base::LogLevel::kWarning, "discarding: " + freed.error().message());
  parts_.host->replicate_soon();
  return {};
}

Result<DeletionForecast> LineageSeries::forecast_deletion(const std::vector<VersionNumber>& numbers,
                                                          const DeletionOptions& options) {
  VARVE_TRY_ASSIGN(auto* const use, load());
  const std::lock_guard lock(mutex_);
  return use->deletion.forecast(numbers, options);
}

Result<DeletionForecast> LineageSeries::delete_versions(const std::vector<VersionNumber>& numbers,
                                                        const DeletionOptions& options) {
  VARVE_TRY(parts_.check_writable());
  VARVE_TRY_ASSIGN(auto* const use, load());
  const std::lock_guard lock(mutex_);
  return use->deletion.run(numbers, options);
}

Result<void> LineageSeries::check_deletion(VersionNumber number) {
  VARVE_TRY_ASSIGN(auto* const use, load());
  const std::lock_guard lock(mutex_);
  return use->deletion.check(number);
}

Result<std::vector<VersionUsage>> LineageSeries::version_usage(std::optional<VersionNumber> only) {
  VARVE_TRY_ASSIGN(auto* const use, load());
  layout::OpenHold hold;
  {
    const std::lock_guard lock(mutex_);
    hold = use->open.hold(nullptr);
  }
  return measure_usage(parts_, *use->store, hold, only);
}

Result<std::vector<VersionLock>> LineageSeries::version_locks() {
  return series::version_locks(parts_);
}

Result<PoolUsage> LineageSeries::pool_usage(VersionNumber number) {
  return series::pool_usage(parts_, number);
}

Result<std::vector<CategoryInfo>> LineageSeries::categories() { return series::categories(parts_); }

Result<ArrangingDebt> LineageSeries::arranging_debt() { return series::arranging_debt(parts_); }

Result<bool> LineageSeries::arrange(const ArrangeOptions& options, Pace pace,
                                    ArrangeProgress& done) {
  VARVE_TRY_ASSIGN(auto* const use, load());
  return use->arranging.arrange(options, pace, done);
}

Result<bool> LineageSeries::protect(const ArrangeOptions& options, ArrangeProgress& done) {
  VARVE_TRY_ASSIGN(auto* const use, load());
  return use->arranging.protect(options, done);
}

Result<void> LineageSeries::add_stats(const meta::Txn& txn, RepositoryStats& stats) {
  return series::add_stats(parts_, txn, stats);
}

Result<void> LineageSeries::remove() {
  VARVE_TRY(parts_.check_writable());
  const std::lock_guard lock(mutex_);
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(*parts_.catalog));
  VARVE_TRY_ASSIGN(const auto records, catalog::list_versions(txn, parts_.id));
  if (!records.empty()) return Error(ErrorCode::kNotEmpty, "the series still has versions");
  VARVE_TRY(catalog::erase_series(txn, parts_.id));
  VARVE_TRY(txn.commit());
  VARVE_TRY(LineageStore::remove_files(parts_));
  return store::remove_folder(*parts_.files, parts_.directory(), store::FolderKind::kSeries);
}

Result<void> LineageSeries::sync() {
  auto* const use = loaded();
  if (use == nullptr) return {};
  const std::lock_guard lock(mutex_);
  return use->open.sync();
}

void LineageSeries::stop() {
  auto* const use = loaded();
  if (use == nullptr) return;
  const std::lock_guard lock(mutex_);
  if (use->open.version()) use->open.version()->stop();
}

void LineageSeries::release() {
  auto* const use = loaded();
  if (use == nullptr) return;
  const std::lock_guard lock(mutex_);
  use->open.release();
}

}  // namespace varve::series
