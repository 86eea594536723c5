// SPDX-License-Identifier: Apache-2.0
// Seals versions: one catalog commit turns an open version into a sealed one.
#include <fmt/format.h>

#include <cerrno>

#include "base/log.h"
#include "catalog/clock_record.h"
#include "catalog/layout_records.h"
#include "catalog/location_table.h"
#include "catalog/names.h"
#include "meta/schema.h"
#include "repo/repository_impl.h"
#include "repo/version_info.h"
#include "store/repository_names.h"
#include "version/sealer.h"

namespace varve::repo {

namespace {

constexpr std::string_view kPartialSuffix = ".partial";

// Returns the name of a version between the seal that takes its name and its deletion.
std::string replaced_name(const std::string& name, VersionNumber number) {
  const std::string suffix = fmt::format(".replaced-{}", static_cast<std::uint32_t>(number));
  return name.substr(0, kNameBytesMax - suffix.size()) + suffix;
}

}  // namespace

Result<SealOutcome> RepositoryImpl::seal(SeriesId series, VersionNumber number,
                                         std::string_view new_name, SealMode mode,
                                         SealWriters writers) {
  VARVE_TRY(check_writable());
  VARVE_TRY_ASSIGN(auto* memory, state(series));
  std::optional<VersionNumber> replaced;
  std::optional<Result<SealOutcome>> outcome;
  {
    const std::lock_guard lock(memory->mutex);
    VARVE_TRY_ASSIGN(auto record, version_record(series, number));
    if (record.state != VersionState::kOpen) {
      return Error(ErrorCode::kReadOnly, record.name + " is sealed already", EROFS);
    }
    VARVE_TRY(resume(*memory, record));
    outcome = seal_locked(*memory, std::move(record), new_name, mode, writers, &replaced);
  }
  if (*outcome && replaced) {
    const auto deleted = delete_versions(series, {*replaced}, {});
    if (!deleted) {
      base::log(base::LogLevel::kWarning,
                (*outcome)->info.name + " was sealed, but the version that it replaces stays, as " +
                    replaced_name((*outcome)->info.name, *replaced) + ": " +
                    deleted.error().message());
    }
  }
  return std::move(*outcome);
}

Result<SealOutcome> RepositoryImpl::seal_locked(SeriesState& memory, catalog::VersionRecord record,
                                                std::string_view new_name, SealMode mode,
                                                SealWriters writers,
                                                std::optional<VersionNumber>* replaced) {
  std::string name(new_name.empty() ? std::string_view(record.name) : new_name);
  if (new_name.empty() && is_partial_name(name)) {
    name.resize(name.size() - kPartialSuffix.size());
  }
  VARVE_TRY(catalog::check_version_name(name, VersionState::kSealed));
  std::optional<catalog::VersionRecord> next;
  std::optional<catalog::VersionRecord> old;
  if (record.replaces && replaced != nullptr && mode == SealMode::kEnd) {
    VARVE_TRY_ASSIGN(auto base, version_record(record.series, record.base));
    if (base.name == name) old = std::move(base);
  }
  if (old) {
    // The version may have been locked after the reopening.
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    VARVE_TRY_ASSIGN(auto locked, lock_of(txn, *old, false));
    if (locked) {
      return std::move(*locked).with_context("the seal would replace " + name +
                                             "; give it another name with --as");
    }
    old->name = replaced_name(name, old->number);
    VARVE_TRY(check_new_name(record.series, old->name));
  } else if (name != record.name) {
    VARVE_TRY(check_new_name(record.series, name));
  } else if (mode == SealMode::kKeep) {
    return Error(ErrorCode::kExists,
                 record.name + " is the name of the version that goes on; give another one",
                 EEXIST);
  }
  VARVE_TRY(with_reserve([&] { return memory.open->freeze(writers); }));
  if (mode == SealMode::kKeep) {
    next.emplace();
    next->series = record.series;
    next->name = record.name;
    next->base = record.number;
  }
  record.name = name;
  SealOutcome outcome;
  const auto before = record;
  const auto next_before = next;
  auto committed = with_reserve([&] {
    record = before;
    next = next_before;
    return commit_seal(memory, record, next ? &*next : nullptr, old ? &*old : nullptr, outcome);
  });
  if (!committed) {
    memory.open->thaw();
    return std::move(committed).error();
  }
  end_open_version(memory, record);
  if (old) {
    *replaced = old->number;
    const std::lock_guard readers(mutex_);
    memory.readers.erase(old->number);  // The next reader() gets the new name.
  }
  space_.keep_reserve();
  if (next) {
    // The commit is done, so a failure here does not fail the seal; the next use tries again.
    const auto resumed = resume(memory, *next);
    if (!resumed) base::log(base::LogLevel::kWarning, resumed.error().message());
  }
  arrange_soon(record.series);
  return outcome;
}

// Follows docs/ORDERING.md O3 and O4: objects, chunks and the index snapshot first, then one
// commit.
Result<void> RepositoryImpl::commit_seal(SeriesState& memory, catalog::VersionRecord& record,
                                         catalog::VersionRecord* next,
                                         const catalog::VersionRecord* replaced,
                                         SealOutcome& outcome) {
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
  record.replaces = false;
  VARVE_TRY_ASSIGN(const auto clock, choose_seal_time(record, outcome.warning));
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
  if (replaced != nullptr) VARVE_TRY(catalog::put_version(txn, *replaced));
  VARVE_TRY(catalog::put_version(txn, record));
  VARVE_TRY(catalog::put_clock_record(txn, clock));
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

// Measures the version's own data: the chunks born in it, and the containers that hold them.
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

// Removes the remains of the open version after the commit. A failure loses nothing; the next
// opening of the repository cleans up.
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

}  // namespace varve::repo
