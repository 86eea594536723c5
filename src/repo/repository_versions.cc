// SPDX-License-Identifier: Apache-2.0
// Versions of a repository: opening, sealing, renaming, abandoning, reading.
#include <fmt/format.h>

#include <cerrno>

#include "base/log.h"
#include "catalog/layout_records.h"
#include "catalog/location_table.h"
#include "catalog/names.h"
#include "layout/window.h"
#include "meta/schema.h"
#include "repo/repository_impl.h"
#include "repo/version_info.h"
#include "store/repository_names.h"
#include "version/sealer.h"

namespace varve {

bool is_partial_name(std::string_view name) { return name.ends_with(".partial"); }

}  // namespace varve

namespace varve::repo {

namespace {

constexpr std::string_view kPartialSuffix = ".partial";

Error no_version() { return {ErrorCode::kNotFound, "no such version", ENOENT}; }
Error version_busy(const std::string& name) {
  return {ErrorCode::kBusy,
          name + " is open in this series; seal it first (`varve seal`, or rename a .partial)",
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
    const bool written = memory.open && memory.open->writers() != 0;
    if (is_partial_name(record.name) || written) return version_busy(record.name);
    VARVE_TRY(resume(memory, record));
    auto sealed = seal_locked(memory, record, record.name, SealMode::kEnd);
    if (!sealed) return std::move(sealed).error();
  }
  return {};
}

Result<VersionInfo> RepositoryImpl::put_new_version(catalog::VersionRecord& record) {
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog_));
  VARVE_TRY_ASSIGN(auto owner, catalog::find_series(txn, record.series));
  if (!owner) return Error(ErrorCode::kNotFound, "no such series", ENOENT);
  record.number = static_cast<VersionNumber>(owner->next_number++);
  record.opened_at = clock_.now();
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
  VARVE_TRY(check_new_name(series, name));
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

// A crash can come between the commit that abandons a version and the one that frees its
// chunks. What was born after the newest sealed version, before this one, is of abandoned
// versions, or of deleted ones of which this one may refer to something.
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

// Brings an open version into memory, if it is not there.
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

Result<SealOutcome> RepositoryImpl::seal(SeriesId series, VersionNumber number,
                                         std::string_view new_name, SealMode mode) {
  VARVE_TRY(check_writable());
  VARVE_TRY_ASSIGN(auto* memory, state(series));
  const std::lock_guard lock(memory->mutex);
  VARVE_TRY_ASSIGN(auto record, version_record(series, number));
  if (record.state != VersionState::kOpen) {
    return Error(ErrorCode::kReadOnly, record.name + " is sealed already", EROFS);
  }
  VARVE_TRY(resume(*memory, record));
  return seal_locked(*memory, std::move(record), new_name, mode);
}

Result<SealOutcome> RepositoryImpl::seal_locked(SeriesState& memory, catalog::VersionRecord record,
                                                std::string_view new_name, SealMode mode) {
  std::string name(new_name.empty() ? std::string_view(record.name) : new_name);
  if (new_name.empty() && is_partial_name(name)) {
    name.resize(name.size() - kPartialSuffix.size());
  }
  VARVE_TRY(catalog::check_version_name(name, VersionState::kSealed));
  std::optional<catalog::VersionRecord> next;
  if (name != record.name) {
    VARVE_TRY(check_new_name(record.series, name));
  } else if (mode == SealMode::kKeep) {
    return Error(ErrorCode::kExists,
                 record.name + " is the name of the version that goes on; give another one",
                 EEXIST);
  }
  VARVE_TRY(memory.open->freeze());
  if (mode == SealMode::kKeep) {
    next.emplace();
    next->series = record.series;
    next->name = record.name;
    next->base = record.number;
  }
  record.name = name;
  SealOutcome outcome;
  auto committed = commit_seal(memory, record, next ? &*next : nullptr, outcome);
  if (!committed) {
    memory.open->thaw();
    return std::move(committed).error();
  }
  end_open_version(memory, record);
  if (next) {
    // The commit stands, so failing here is no failure to seal; the next use tries again.
    const auto resumed = resume(memory, *next);
    if (!resumed) base::log(base::LogLevel::kWarning, resumed.error().message());
  }
  arrange_soon(record.series);
  return outcome;
}

// docs/ORDERING.md O3 and O4: objects, chunks and the index snapshot first, then one commit.
Result<void> RepositoryImpl::commit_seal(SeriesState& memory, catalog::VersionRecord& record,
                                         catalog::VersionRecord* next, SealOutcome& outcome) {
  VARVE_TRY_ASSIGN(const auto parent, newest_sealed(record.series));
  catalog::ObjectWriter objects(catalog_, *memory.objects, record.series, record.number);
  version::Sealer sealer(memory.open->overlay(), *memory.objects, objects,
                         parent ? &parent->root : nullptr, memory.open->base());
  VARVE_TRY_ASSIGN(auto tree, sealer.seal());
  if (tree.damaged) {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    const auto all = catalog::version_chunks(txn, record.series, record.base);
    if (all) tree.chunks = tree.chunks.unite(*all);
  }
  VARVE_TRY(memory.layout->on_seal(record.number, tree.chunks));
  VARVE_TRY_ASSIGN(const bool side, save_window(memory, record, tree.chunks));
  record.state = VersionState::kSealed;
  record.base = VersionNumber{};
  record.sealed_at = clock_.now();
  record.root = std::move(tree.root);
  record.entries = tree.entries;
  record.logical_bytes = tree.logical_bytes;
  VARVE_TRY(measure_version(record));
  VARVE_TRY_ASSIGN(const auto manifest, begin_manifest(record, objects.new_objects()));
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog_));
  VARVE_TRY_ASSIGN(auto owner, catalog::find_series(txn, record.series));
  if (!owner) return Error(ErrorCode::kCorrupt, "the series' record is missing", EIO);
  VARVE_TRY(catalog::put_version_chunks(txn, record.series, record.number, tree.chunks));
  VARVE_TRY(catalog::put_version_links(txn, record.series, record.number, tree.links));
  VARVE_TRY(catalog::put_retention(txn, record.series, record.number, {side, {}}));
  VARVE_TRY(catalog::put_version(txn, record));
  VARVE_TRY(manifest->commit(txn));
  if (next != nullptr) {
    next->number = static_cast<VersionNumber>(owner->next_number++);
    next->opened_at = record.sealed_at;
    next->root.mode = record.root.mode;
    next->root.uid = record.root.uid;
    next->root.gid = record.root.gid;
    next->root.mtime = record.root.mtime;
    VARVE_TRY(catalog::put_series(txn, *owner));
    VARVE_TRY(catalog::put_version(txn, *next));
    outcome.next = version_info(*next, owner->name);
  }
  VARVE_TRY(txn.commit());
  sync_labels(record.series);
  outcome.info = version_info(record, owner->name);
  outcome.rank_of = std::move(tree.rank_of);
  return {};
}

// What the version brought: the chunks born in it, and the containers that hold them.
Result<void> RepositoryImpl::measure_version(catalog::VersionRecord& record) {
  record.unique_bytes = 0;
  record.stored_bytes = 0;
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  std::optional<std::uint32_t> counted;
  return catalog::for_each_location(
      txn, record.series, ChunkId::make(record.number, 0),
      [&](const catalog::LocationRecord& at) -> Result<bool> {
        if (at.first.birth() != record.number) return false;
        record.unique_bytes += at.raw_bytes;
        if (counted == at.container) return true;
        counted = at.container;
        VARVE_TRY_ASSIGN(const auto container,
                         catalog::find_container(txn, record.series, at.container));
        if (container) record.stored_bytes += container->end() - container->offset;
        return true;
      });
}

// After the commit: what is left of the open version goes. Failing here loses nothing, and
// the next opening of the repository cleans up.
void RepositoryImpl::end_open_version(SeriesState& memory, const catalog::VersionRecord& record) {
  memory.open->stop();
  memory.open.reset();
  memory.index.reset();
  auto removed = remove_staging(record);
  const auto directory = series_directory(record.series);
  auto names = files_->list(directory);
  if (names) {
    for (const auto& name : *names) {
      const auto snapshot = store::parse_snapshot_name(name);
      if (!snapshot || *snapshot == record.number) continue;
      if (record.state == VersionState::kSealed) removed = files_->remove(directory + "/" + name);
    }
  }
  if (!removed) base::log(base::LogLevel::kWarning, removed.error().message());
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
  memory->readers.erase(number);  // The next reader() learns the new name.
  return {};
}

}  // namespace varve::repo
