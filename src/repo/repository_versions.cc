// SPDX-License-Identifier: Apache-2.0
// Opens, renames and reads versions.
#include <fmt/format.h>

#include <cerrno>

#include "base/log.h"
#include "catalog/clock_record.h"
#include "catalog/layout_records.h"
#include "catalog/location_table.h"
#include "catalog/names.h"
#include "layout/window.h"
#include "meta/schema.h"
#include "repo/repository_impl.h"
#include "repo/version_info.h"
#include "store/repository_names.h"

namespace varve {

bool is_partial_name(std::string_view name) { return name.ends_with(".partial"); }

}  // namespace varve

namespace varve::repo {

namespace {

// Room for its records and an empty overlay.
constexpr std::uint64_t kNewVersionBytes = 256U << 10;

Error no_version() { return {ErrorCode::kNotFound, "no such version", ENOENT}; }
Error version_busy(const std::string& name, const std::string& why) {
  return {ErrorCode::kBusy,
          name + " is open in this series and " + why +
              "; seal it with `varve seal`, or remove it with `varve rm` (or rmdir, while it is "
              "empty)",
          EBUSY};
}

}  // namespace

Result<catalog::VersionRecord> RepositoryImpl::version_record(SeriesId series,
                                                              VersionNumber number) {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  VARVE_TRY_ASSIGN(auto record, catalog::find_version(txn, series, number));
  if (!record) return no_version();
  return std::move(*record);
}

Result<std::vector<VersionInfo>> RepositoryImpl::versions(SeriesId series) {
  VARVE_TRY_ASSIGN(const auto owner, series_record(series));
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  VARVE_TRY_ASSIGN(const auto records, catalog::list_versions(txn, series));
  std::vector<VersionInfo> all;
  for (const auto& record : records) {
    if (options_.read_only && record.state == VersionState::kOpen) continue;
    if (record.unfinished) continue;
    all.push_back(version_info(record, owner.name));
  }
  return all;
}

Result<VersionInfo> RepositoryImpl::find_version(SeriesId series, std::string_view name) {
  if (name == catalog::kLatestName) {
    VARVE_TRY_ASSIGN(const auto owner, series_record(series));
    VARVE_TRY_ASSIGN(const auto newest, newest_sealed(series));
    if (!newest) return no_version();
    if (!newest->name_fault.empty()) {
      return Error(ErrorCode::kCorrupt,
                   fmt::format("the newest version has no valid name ({}); it is shown as {}: run "
                               "`varve check`",
                               newest->name_fault, newest->name),
                   EIO);
    }
    return version_info(*newest, owner.name);
  }
  VARVE_TRY_ASSIGN(auto all, versions(series));
  for (auto& info : all) {
    if (info.name == name) return std::move(info);
  }
  return no_version();
}

Result<void> RepositoryImpl::check_new_name(SeriesId series, std::string_view name) {
  VARVE_TRY(catalog::check_version_name(name, VersionState::kOpen));
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  VARVE_TRY_ASSIGN(const auto records, catalog::list_versions(txn, series));
  for (const auto& record : records) {
    if (record.name == name) {
      return Error(ErrorCode::kExists, "a version of this name is there already", EEXIST);
    }
  }
  return {};
}

Result<std::optional<catalog::VersionRecord>> RepositoryImpl::newest_sealed(SeriesId series) {
  std::optional<catalog::VersionRecord> newest;
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  VARVE_TRY_ASSIGN(auto records, catalog::list_versions(txn, series));
  for (auto& record : records) {
    if (record.state == VersionState::kSealed) newest = std::move(record);
  }
  return newest;
}

// Finds the errors with which open_version() would fail after it has sealed another version.
Result<void> RepositoryImpl::check_may_open(SeriesId series, std::string_view name) {
  VARVE_TRY(check_new_name(series, name));
  return space_.admit(kNewVersionBytes);
}

// Allows only a finished version to be sealed for the next one. A copy one level too high makes one
// version after the other in a series; it must not seal them.
Result<void> RepositoryImpl::check_may_end(SeriesState& memory,
                                           const catalog::VersionRecord& record) {
  if (is_partial_name(record.name)) return version_busy(record.name, "partial");
  if (!options_.autoseal_s) return version_busy(record.name, "is never sealed automatically");
  VARVE_TRY(resume(memory, record));
  if (memory.open->writers() != 0) return version_busy(record.name, "has files open for writing");
  VARVE_TRY_ASSIGN(const bool empty, memory.open->is_empty());
  if (empty) return version_busy(record.name, "empty");
  const std::uint32_t pause_s = *options_.autoseal_s;
  if (pause_s == 0) return {};
  const auto idle_s = clock_.now().seconds - memory.open->changed_at().seconds;
  if (idle_s < pause_s) {
    return version_busy(record.name,
                        fmt::format("was written to less than {} seconds ago", pause_s));
  }
  return {};
}

Result<std::optional<VersionInfo>> RepositoryImpl::version_to_end(SeriesId series,
                                                                  std::string_view name,
                                                                  VersionNumber source) {
  VARVE_TRY(check_writable());
  VARVE_TRY_ASSIGN(auto* memory, state(series));
  const std::lock_guard lock(memory->mutex);
  if (source != VersionNumber{}) {
    VARVE_TRY(clone_source(series, source, name));
  } else {
    VARVE_TRY(check_may_open(series, name));
  }
  std::vector<catalog::VersionRecord> records;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    VARVE_TRY_ASSIGN(records, catalog::list_versions(txn, series));
  }
  for (const auto& record : records) {
    if (record.state != VersionState::kOpen || record.unfinished) continue;
    VARVE_TRY(check_may_end(*memory, record));
    return std::optional(memory->open->info());
  }
  return std::optional<VersionInfo>();
}

Result<std::vector<VersionInfo>> RepositoryImpl::open_versions(SeriesId series) {
  VARVE_TRY_ASSIGN(const auto owner, series_record(series));
  std::vector<catalog::VersionRecord> records;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    VARVE_TRY_ASSIGN(records, catalog::list_versions(txn, series));
  }
  std::vector<VersionInfo> all;
  for (auto& record : records) {
    if (record.state != VersionState::kOpen || record.unfinished) continue;
    VARVE_TRY(measure_open(record));
    all.push_back(version_info(record, owner.name));
  }
  return all;
}

// Measures an open version for display. Another process may be writing it. Unreadable sizes stay 0.
Result<void> RepositoryImpl::measure_open(catalog::VersionRecord& record) {
  if (const auto measured = measure_version(record); !measured) {
    base::log(base::LogLevel::kDebug, measured.error().message());
  }
  VARVE_TRY_ASSIGN(auto* memory, state(record.series));
  // A seal or a deletion may hold the mutex for long. Only its holder may open the overlay.
  const std::unique_lock lock(memory->mutex, std::try_to_lock);
  if (!lock.owns_lock()) return {};
  if (memory->open && memory->open->info().number == record.number) {
    record.entries = memory->open->entries();
    return {};
  }
  const auto known =
      version::OpenVersion::entries_in(*files_, staging_directory(record.series, record.number));
  if (known) {
    record.entries = *known;
  } else if (record.base != VersionNumber{}) {
    const auto base = version_record(record.series, record.base);
    if (base) record.entries = base->entries;
  }
  return {};
}

Result<void> RepositoryImpl::end_present_version(SeriesState& memory, SeriesId series) {
  std::vector<catalog::VersionRecord> records;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    VARVE_TRY_ASSIGN(records, catalog::list_versions(txn, series));
  }
  for (const auto& record : records) {
    if (record.state != VersionState::kOpen) continue;
    if (record.unfinished) {
      VARVE_TRY(drop_unfinished(memory, record));
      continue;
    }
    VARVE_TRY(check_may_end(memory, record));
    auto sealed = seal_locked(memory, record, record.name, SealMode::kEnd);
    if (!sealed) return std::move(sealed).error();
    base::log(base::LogLevel::kInfo,
              sealed->info.series_name + "/" + sealed->info.name +
                  " was sealed, since another version of the series is opened");
  }
  return {};
}

Result<VersionInfo> RepositoryImpl::put_new_version(catalog::VersionRecord& record) {
  VARVE_TRY(space_.admit(kNewVersionBytes));
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog_));
  VARVE_TRY_ASSIGN(auto owner, catalog::find_series(txn, record.series));
  if (!owner) return Error(ErrorCode::kNotFound, "no such series", ENOENT);
  record.number = static_cast<VersionNumber>(owner->next_number++);
  record.opened_at = clock_.now();
  VARVE_TRY(catalog::observe_clock(txn, record.opened_at));
  VARVE_TRY(catalog::put_series(txn, *owner));
  VARVE_TRY(catalog::put_version(txn, record));
  VARVE_TRY(txn.commit());
  sync_labels(record.series);
  return version_info(record, owner->name);
}

Result<VersionInfo> RepositoryImpl::open_version(SeriesId series, std::string_view name,
                                                 const NewFile& root) {
  VARVE_TRY(check_writable());
  VARVE_TRY_ASSIGN(auto* memory, state(series));
  const std::lock_guard lock(memory->mutex);
  VARVE_TRY(check_may_open(series, name));
  VARVE_TRY(end_present_version(*memory, series));
  catalog::VersionRecord record;
  record.series = series;
  record.name = name;
  record.root.mode = (root.mode & 07777) | S_IFDIR;
  record.root.uid = root.uid;
  record.root.gid = root.gid;
  record.root.mtime = clock_.now();
  VARVE_TRY_ASSIGN(auto info, put_new_version(record));
  VARVE_TRY(resume(*memory, record));
  return info;
}

// Frees the chunks of abandoned versions. A crash can come between the commit that abandons a
// version and the one that frees its chunks. Chunks born after the newest sealed version and before
// this one belong to abandoned versions, or to deleted versions whose chunks this one may use.
Result<void> RepositoryImpl::drop_leftovers(SeriesState& memory,
                                            const catalog::VersionRecord& record) {
  auto before = ChunkId::make(record.number, 0);
  while (true) {
    VersionNumber birth{};
    bool in_use = false;
    {
      VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
      VARVE_TRY_ASSIGN(const auto last,
                       catalog::find_last_location_before(txn, record.series, before));
      if (!last) return {};
      birth = last->first.birth();
      VARVE_TRY_ASSIGN(const auto versions, layout::live_versions(txn, record.series));
      for (const auto& other : versions) {
        if (other.sealed && other.number >= birth) return {};
        if (other.sealed) continue;
        VARVE_TRY_ASSIGN(const auto kept, layout::protected_chunks(txn, record.series, other));
        for (const auto& run : kept.runs()) in_use = in_use || run.first.birth() == birth;
      }
    }
    if (!in_use) VARVE_TRY(memory.layout->on_delete(birth));
    before = ChunkId::make(birth, 0);
  }
}

// Loads an open version into memory, unless it is loaded.
Result<void> RepositoryImpl::resume(SeriesState& memory, const catalog::VersionRecord& record) {
  if (memory.open) return {};
  VARVE_TRY_ASSIGN(const auto owner, series_record(record.series));
  VARVE_TRY(drop_leftovers(memory, record));
  VARVE_TRY(memory.layout->begin_version(record.number));
  VARVE_TRY_ASSIGN(auto index, load_index(memory, record));
  version::OpenVersionParts parts;
  VARVE_TRY_ASSIGN(parts.base, load_base(memory, record));
  parts.clock = &clock_;
  parts.files = files_.get();
  parts.staging_directory = staging_directory(record.series, record.number);
  parts.chunker = chunker_.get();
  parts.index = index;
  parts.layout = memory.layout.get();
  parts.read_service = read_service_.get();
  parts.fingerprint_pool = fingerprint_pool_.get();
  parts.space = &space_;
  parts.checkpoint_interval_ms = options_.checkpoint_interval_ms;
  NewFile root;
  root.mode = record.root.mode;
  root.uid = record.root.uid;
  root.gid = record.root.gid;
  VARVE_TRY_ASSIGN(memory.open,
                   version::OpenVersion::open(parts, version_info(record, owner.name), root));
  memory.index = std::move(index);
  return {};
}

Result<std::shared_ptr<VersionWriter>> RepositoryImpl::writer(SeriesId series) {
  VARVE_TRY(check_writable());
  VARVE_TRY_ASSIGN(auto* memory, state(series));
  const std::lock_guard lock(memory->mutex);
  if (!memory->open) {
    std::vector<catalog::VersionRecord> records;
    {
      VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
      VARVE_TRY_ASSIGN(records, catalog::list_versions(txn, series));
    }
    for (const auto& record : records) {
      if (record.state != VersionState::kOpen || record.unfinished) continue;
      VARVE_TRY(resume(*memory, record));
    }
  }
  if (!memory->open) return no_version();
  return std::shared_ptr<VersionWriter>(memory->open);
}

Result<std::shared_ptr<VersionReader>> RepositoryImpl::reader(SeriesId series,
                                                              VersionNumber number) {
  VARVE_TRY_ASSIGN(auto* memory, state(series));
  {
    const std::lock_guard lock(mutex_);
    if (auto known = memory->readers[number].lock()) {
      return std::shared_ptr<VersionReader>(std::move(known));
    }
  }
  VARVE_TRY_ASSIGN(const auto owner, series_record(series));
  VARVE_TRY_ASSIGN(const auto record, version_record(series, number));
  if (record.state != VersionState::kSealed) {
    return Error(ErrorCode::kInvalid, record.name + " is not sealed yet", EINVAL);
  }
  disk_costs_->on_reader();
  version::SealedVersionParts parts;
  parts.objects = memory->objects.get();
  parts.source = memory->layout.get();
  parts.read_service = read_service_.get();
  parts.open_files = open_files(*memory, number);
  auto opened = std::make_shared<version::SealedVersion>(parts, version_info(record, owner.name),
                                                         record.root);
  const std::lock_guard lock(mutex_);
  memory->readers[number] = opened;
  return std::shared_ptr<VersionReader>(std::move(opened));
}

Result<void> RepositoryImpl::rename_version(SeriesId series, VersionNumber number,
                                            std::string_view new_name) {
  VARVE_TRY(check_writable());
  VARVE_TRY_ASSIGN(auto* memory, state(series));
  const std::lock_guard lock(memory->mutex);
  VARVE_TRY_ASSIGN(auto record, version_record(series, number));
  if (is_partial_name(new_name) &&
      (record.state == VersionState::kSealed || !is_partial_name(record.name))) {
    return Error(ErrorCode::kNotPermitted, "a version cannot become partial again", EPERM);
  }
  if (record.state == VersionState::kOpen && is_partial_name(record.name) &&
      !is_partial_name(new_name)) {
    return Error(ErrorCode::kInvalid, "dropping .partial seals the version", EINVAL);
  }
  if (new_name == record.name) return {};
  VARVE_TRY(check_new_name(series, new_name));
  record.name = new_name;
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog_));
  VARVE_TRY(catalog::put_version(txn, record));
  VARVE_TRY(txn.commit());
  sync_labels(series);
  if (memory->open && record.state == VersionState::kOpen) memory->open->rename_to(record.name);
  const std::lock_guard readers(mutex_);
  memory->readers.erase(number);  // The next reader() gets the new name.
  return {};
}

}  // namespace varve::repo
