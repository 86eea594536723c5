// SPDX-License-Identifier: Apache-2.0
#include "series/series.h"

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
#include "series/lineage_usage.h"
#include "series/pool.h"
#include "series/series_state.h"
#include "series/usage.h"
#include "store/repository_names.h"
#include "varve/version_name.h"
#include "version/open_version.h"
#include "version/sealed_version.h"

namespace varve::series {

Series::Series(const SeriesParts& parts) : state_(std::make_unique<SeriesState>(parts)) {}

Series::~Series() = default;

const SeriesParts& Series::parts() const { return state_->parts; }

Result<std::vector<VersionInfo>> Series::versions() {
  VARVE_TRY_ASSIGN(const auto owner, state_->records.owner());
  VARVE_TRY_ASSIGN(const auto records, state_->records.all());
  std::vector<VersionInfo> all;
  for (const auto& record : records) {
    if (state_->parts.options->read_only && record.state == VersionState::kOpen) continue;
    if (record.unfinished) continue;
    all.push_back(version_info(record, owner.name));
  }
  return all;
}

Result<VersionInfo> Series::find_version(std::string_view name) {
  if (name == kLatestName) {
    VARVE_TRY_ASSIGN(const auto owner, state_->records.owner());
    VARVE_TRY_ASSIGN(const auto newest, state_->records.newest_sealed());
    if (!newest) return no_version();
    if (!newest->name_fault.empty()) {
      return Error(ErrorCode::kCorrupt, "the newest version has no valid name (" +
                                            newest->name_fault + "); Varve shows it as " +
                                            newest->name + ". Run `varve check`");
    }
    return version_info(*newest, owner.name);
  }
  VARVE_TRY_ASSIGN(const auto owner, state_->records.owner());
  VARVE_TRY_ASSIGN(const auto record, state_->records.find_named(name));
  if (!record || record->unfinished) return no_version();
  if (state_->parts.options->read_only && record->state == VersionState::kOpen) return no_version();
  return version_info(*record, owner.name);
}

Result<std::optional<VersionInfo>> Series::version_to_end(std::string_view name,
                                                          VersionNumber source) {
  VARVE_TRY(state_->parts.check_writable());
  VARVE_TRY_ASSIGN(auto* const use, state_->load());
  const std::lock_guard lock(state_->mutex);
  if (source != VersionNumber{}) {
    VARVE_TRY(use->clones.source(source, name));
  } else {
    VARVE_TRY(use->open.check_may_open(name));
  }
  VARVE_TRY_ASSIGN(const auto records, state_->records.all());
  for (const auto& record : records) {
    if (record.state != VersionState::kOpen || record.unfinished) continue;
    VARVE_TRY(use->open.check_may_end(record));
    return std::optional(use->open.version()->info());
  }
  return std::optional<VersionInfo>();
}

Result<std::vector<VersionInfo>> Series::open_versions(OpenSizes sizes) {
  VARVE_TRY_ASSIGN(const auto owner, state_->records.owner());
  VARVE_TRY_ASSIGN(auto records, state_->records.all());
  std::vector<VersionInfo> all;
  if (!state_->parts.has_open_versions) records.clear();
  for (auto& record : records) {
    if (record.state != VersionState::kOpen || record.unfinished) continue;
    if (sizes == OpenSizes::kMeasured) VARVE_TRY(state_->measure_open(record));
    all.push_back(version_info(record, owner.name));
  }
  return all;
}

Result<VersionInfo> Series::open_version(std::string_view name, const NewFile& root) {
  VARVE_TRY(state_->parts.check_writable());
  VARVE_TRY_ASSIGN(auto* const use, state_->load());
  const std::lock_guard lock(state_->mutex);
  VARVE_TRY(use->open.check_may_open(name));
  VARVE_TRY(state_->end_present_version(*use));
  catalog::VersionRecord record;
  record.series = state_->parts.id;
  record.name = name;
  record.root.mode = (root.mode & 07777) | S_IFDIR;
  record.root.uid = root.uid;
  record.root.gid = root.gid;
  record.root.mtime = state_->parts.clock->now();
  VARVE_TRY_ASSIGN(auto info, use->open.put_new(record));
  VARVE_TRY(use->open.resume(record));
  return info;
}

Result<std::shared_ptr<VersionWriter>> Series::writer() {
  VARVE_TRY(state_->parts.check_writable());
  VARVE_TRY_ASSIGN(auto* const use, state_->load());
  const std::lock_guard lock(state_->mutex);
  if (!use->open.version()) {
    VARVE_TRY_ASSIGN(const auto records, state_->records.all());
    for (const auto& record : records) {
      if (record.state != VersionState::kOpen || record.unfinished) continue;
      VARVE_TRY(use->open.resume(record));
    }
  }
  if (!use->open.version()) return no_version();
  return std::shared_ptr<VersionWriter>(use->open.version());
}

Result<std::shared_ptr<VersionReader>> Series::reader(VersionNumber number) {
  VARVE_TRY_ASSIGN(auto* const use, state_->load());
  if (auto known = state_->readers.find(number))
    return std::shared_ptr<VersionReader>(std::move(known));
  VARVE_TRY_ASSIGN(const auto owner, state_->records.owner());
  VARVE_TRY_ASSIGN(const auto record, state_->records.find(number));
  if (record.state != VersionState::kSealed) {
    return Error(ErrorCode::kInvalid, record.name + " is not sealed yet");
  }
  state_->parts.host->on_reader();
  version::SealedVersionParts parts;
  parts.objects = use->store->objects.get();
  parts.source = use->store->all.get();
  parts.read_service = state_->parts.read_service;
  parts.open_files = state_->readers.open_files(number);
  parts.on_open = [this](const format::Recipe& recipe) {
    Pool* const pool = state_->parts.host->opened_pool();
    if (pool != nullptr) pool->note_opened(state_->parts.id, recipe);
  };
  parts.links = [this, number] { return state_->records.links(number); };
  auto opened = std::make_shared<version::SealedVersion>(parts, version_info(record, owner.name),
                                                         record.root);
  state_->readers.add(number, opened);
  return std::shared_ptr<VersionReader>(std::move(opened));
}

Result<void> Series::rename_version(VersionNumber number, std::string_view new_name) {
  VARVE_TRY(state_->parts.check_writable());
  VARVE_TRY_ASSIGN(auto* const use, state_->load());
  const std::lock_guard lock(state_->mutex);
  VARVE_TRY_ASSIGN(auto record, state_->records.find(number));
  if (is_partial_name(new_name) &&
      (record.state == VersionState::kSealed || !is_partial_name(record.name))) {
    return Error(ErrorCode::kNotPermitted, "a version cannot become partial again");
  }
  if (record.state == VersionState::kOpen && is_partial_name(record.name) &&
      !is_partial_name(new_name)) {
    return Error(ErrorCode::kInvalid, "dropping .partial seals the version");
  }
  if (new_name == record.name) return {};
  VARVE_TRY(state_->records.check_new_name(new_name));
  record.name = new_name;
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(*state_->parts.catalog));
  VARVE_TRY(catalog::put_version(txn, record));
  VARVE_TRY(txn.commit());
  state_->manifests.labels().change({number});
  if (use->open.version() && record.state == VersionState::kOpen)
    use->open.version()->rename_to(record.name);
  state_->readers.forget(number);  // The next reader() gets the new name.
  if (record.state == VersionState::kSealed) state_->parts.host->replicate_soon();
  return {};
}

Result<SealOutcome> Series::seal(VersionNumber number, std::string_view new_name, SealMode mode,
                                 SealWriters writers) {
  VARVE_TRY(state_->parts.check_writable());
  VARVE_TRY_ASSIGN(auto* const use, state_->load());
  state_->parts.host->before_seal(state_->parts.id);
  std::optional<Result<SealResult>> sealed;
  {
    const std::lock_guard lock(state_->mutex);
    VARVE_TRY_ASSIGN(auto record, state_->records.find(number));
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

Result<VersionInfo> Series::clone_version(VersionNumber source, std::string_view name) {
  VARVE_TRY(state_->parts.check_writable());
  VARVE_TRY_ASSIGN(auto* const use, state_->load());
  const std::lock_guard lock(state_->mutex);
  VARVE_TRY_ASSIGN(const auto found, use->clones.source(source, name));
  const auto& [from, reopens, own_name] = found;
  VARVE_TRY(state_->end_present_version(*use));
  VARVE_TRY_ASSIGN(const auto newest, state_->records.newest_sealed());
  if (newest && newest->number != source) {
    return use->clones.copy(from, own_name);
  }
  catalog::VersionRecord record;
  record.series = state_->parts.id;
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

Result<void> Series::lock_version(VersionNumber number, Timestamp until) {
  VARVE_TRY(state_->parts.check_writable());
  const std::lock_guard lock(state_->mutex);
  VARVE_TRY_ASSIGN(const auto record, state_->records.find(number));
  if (record.state != VersionState::kSealed) {
    return Error(ErrorCode::kInvalid, record.name + " is not sealed yet");
  }
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(*state_->parts.catalog));
  VARVE_TRY_ASSIGN(auto retention, catalog::find_retention(txn, state_->parts.id, number));
  if (until < retention.locked_until) {
    return Error(ErrorCode::kNotPermitted,
                 record.name + " is locked for longer; a lock cannot be made shorter");
  }
  retention.locked_until = until;
  VARVE_TRY(catalog::put_retention(txn, state_->parts.id, number, retention));
  VARVE_TRY(catalog::observe_clock(txn, state_->parts.clock->now()));
  VARVE_TRY(txn.commit());
  state_->manifests.labels().change({number});
  state_->manifests.rewrite(record);
  state_->parts.host->replicate_soon();
  return {};
}

Result<void> Series::abandon_version(VersionNumber number, bool force) {
  VARVE_TRY(state_->parts.check_writable());
  VARVE_TRY_ASSIGN(auto* const use, state_->load());
  const std::lock_guard lock(state_->mutex);
  VARVE_TRY_ASSIGN(auto record, state_->records.find(number));
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
  auto erased = state_->parts.with_reserve([&]() -> Result<void> {
    VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(*state_->parts.catalog));
    VARVE_TRY(catalog::erase_version(txn, state_->parts.id, number));
    return txn.commit();
  });
  if (!erased) {
    use->open.version()->thaw();
    return erased;
  }
  state_->manifests.labels().change({number});
  use->open.end(record);
  const auto freed = state_->parts.with_reserve([&] { return use->store->all->on_delete(number); });
  use->open.end_in_pool(number);
  state_->parts.space->keep_reserve();
  // The version is gone. The next version of the series frees the rest.
  if (!freed) base::log(base::LogLevel::kWarning, "discarding: " + freed.error().message());
  state_->parts.host->replicate_soon();
  return {};
}

Result<DeletionForecast> Series::forecast_deletion(const std::vector<VersionNumber>& numbers,
                                                   const DeletionOptions& options) {
  VARVE_TRY_ASSIGN(auto* const use, state_->load());
  const std::lock_guard lock(state_->mutex);
  return use->deletion.forecast(numbers, options);
}

Result<DeletionForecast> Series::delete_versions(const std::vector<VersionNumber>& numbers,
                                                 const DeletionOptions& options) {
  VARVE_TRY(state_->parts.check_writable());
  VARVE_TRY_ASSIGN(auto* const use, state_->load());
  const std::lock_guard lock(state_->mutex);
  return use->deletion.run(numbers, options);
}

Result<void> Series::check_deletion(VersionNumber number) {
  VARVE_TRY_ASSIGN(auto* const use, state_->load());
  const std::lock_guard lock(state_->mutex);
  return use->deletion.check(number);
}

Result<std::vector<VersionUsage>> Series::version_usage(std::optional<VersionNumber> only) {
  VARVE_TRY_ASSIGN(auto* const use, state_->load());
  layout::OpenHold hold;
  {
    const std::lock_guard lock(state_->mutex);
    hold = use->open.hold(nullptr);
  }
  return measure_usage(state_->parts, *use->store, hold, only);
}

Result<bool> Series::arrange(const ArrangeOptions& options, Pace pace, ArrangeProgress& done) {
  VARVE_TRY_ASSIGN(auto* const use, state_->load());
  return use->arranging.arrange(options, pace, done);
}

Result<bool> Series::protect(const ArrangeOptions& options, ArrangeProgress& done) {
  VARVE_TRY_ASSIGN(auto* const use, state_->load());
  return use->arranging.protect(options, done);
}

Result<void> Series::remove() {
  VARVE_TRY(state_->parts.check_writable());
  const std::lock_guard lock(state_->mutex);
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(*state_->parts.catalog));
  VARVE_TRY_ASSIGN(const auto records, catalog::list_versions(txn, state_->parts.id));
  if (!records.empty()) return Error(ErrorCode::kNotEmpty, "the series still has versions");
  VARVE_TRY(catalog::erase_series(txn, state_->parts.id));
  VARVE_TRY(txn.commit());
  VARVE_TRY(LineageStore::remove_files(state_->parts));
  return store::remove_folder(*state_->parts.files, state_->parts.directory(),
                              store::FolderKind::kSeries);
}

Result<void> Series::sync() {
  auto* const use = state_->loaded();
  if (use == nullptr) return {};
  const std::lock_guard lock(state_->mutex);
  return use->open.sync();
}

void Series::stop() {
  auto* const use = state_->loaded();
  if (use == nullptr) return;
  const std::lock_guard lock(state_->mutex);
  if (use->open.version()) use->open.version()->stop();
}

void Series::release() {
  auto* const use = state_->loaded();
  if (use == nullptr) return;
  const std::lock_guard lock(state_->mutex);
  use->open.release();
}

}  // namespace varve::series
