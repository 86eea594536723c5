// SPDX-License-Identifier: Apache-2.0
// Loads, ends and drops the open version of a series.
#include "series/lineage_open.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "catalog/clock_record.h"
#include "catalog/layout_records.h"
#include "catalog/location_table.h"
#include "catalog/object_store.h"
#include "index/neighbour_index.h"
#include "ingest/dedup_policy.h"
#include "layout/category_layout.h"
#include "layout/deletion.h"
#include "layout/series_layout.h"
#include "layout/window.h"
#include "meta/schema.h"
#include "series/index_files.h"
#include "series/lineage_index.h"
#include "series/lineage_store.h"
#include "series/pool_policy.h"
#include "series/pool_session.h"
#include "series/staging.h"
#include "store/repository_names.h"
#include "varve/copy_name.h"
#include "varve/version_name.h"
#include "version/clone_base.h"
#include "version/open_references.h"
#include "version/open_version.h"

namespace varve::series {

namespace {

// Room for the version's records and an empty overlay.
constexpr std::uint64_t kNewVersionBytes = 256U << 10;

Error version_busy(const std::string& name, const std::string& why) {
  if (is_receiving_name(name)) {
    return {ErrorCode::kBusy, name +
                                  " is open in this series and receives a copy; run `varve copy` "
                                  "again, or remove it with `varve rm`"};
  }
  return {ErrorCode::kBusy,
          name + " is open in this series and " + why +
              "; seal it with `varve seal`, or remove it with `varve rm` (or rmdir, while it is "
              "empty)"};
}

}  // namespace

LineageOpen::LineageOpen(const SeriesParts& parts, LineageStore& store, Manifests& manifests)
    : parts_(parts),
      store_(store),
      manifests_(manifests),
      records_(*parts.catalog, parts.id),
      index_(std::make_unique<LineageIndex>(parts, store, manifests)) {}

LineageOpen::~LineageOpen() = default;

RewriteCounts LineageOpen::rewrite_counts() const { return dedup_policy_->counts(); }

// Finds the errors with which open_version() would fail after sealing another version.
Result<void> LineageOpen::check_may_open(std::string_view name) {
  VARVE_TRY(records_.check_new_name(name));
  return parts_.space->admit(kNewVersionBytes);
}

// Allows only a finished version to be sealed for the next version. A program that copies a tree
// one level too high makes version after version in a series; such a copy must not seal the
// versions.
Result<void> LineageOpen::check_may_end(const catalog::VersionRecord& record) {
  if (is_partial_name(record.name)) return version_busy(record.name, "partial");
  if (!parts_.options->autoseal_s)
    return version_busy(record.name, "is never sealed automatically");
  VARVE_TRY_ASSIGN(const bool unfinished,
                   parts_.files->exists(parts_.directory() + "/" +
                                        store::unfinished_sources_name(record.number)));
  if (unfinished) {
    return Error(ErrorCode::kBusy,
                 record.name +
                     " is open in this series and was left by an interrupted `varve store` or "
                     "`varve import`; give that command again, or remove it with `varve rm`");
  }
  VARVE_TRY(resume(record));
  if (open_->writers() != 0) return version_busy(record.name, "has files open for writing");
  VARVE_TRY_ASSIGN(const bool empty, open_->is_empty());
  if (empty) return version_busy(record.name, "empty");
  const std::uint32_t pause_s = *parts_.options->autoseal_s;
  if (pause_s == 0) return {};
  const auto idle_s = parts_.clock->now().seconds - open_->changed_at().seconds;
  if (idle_s < pause_s) {
    return version_busy(record.name,
                        "was written to less than " + std::to_string(pause_s) + " seconds ago");
  }
  return {};
}

Result<VersionInfo> LineageOpen::put_new(catalog::VersionRecord& record) {
  VARVE_TRY(parts_.space->admit(kNewVersionBytes));
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(*parts_.catalog));
  VARVE_TRY_ASSIGN(auto owner, catalog::find_series(txn, parts_.id));
  if (!owner) return Error(ErrorCode::kNotFound, "no such series");
  VARVE_TRY_ASSIGN(record.number, catalog::take_version_number(txn, *owner));
  record.opened_at = parts_.clock->now();
  VARVE_TRY(catalog::observe_clock(txn, record.opened_at));
  VARVE_TRY(catalog::put_series(txn, *owner));
  VARVE_TRY(catalog::put_version(txn, record));
  VARVE_TRY(txn.commit());
  manifests_.labels().change({record.number});
  return version_info(record, owner->name);
}

// Frees the chunks of abandoned versions. A crash can come between the commit that abandons a
// version and the commit that frees the chunks. Chunks born after the newest sealed version and
// before the version of `record` belong to abandoned versions, or to deleted versions whose chunks
// `record` may use.
Result<void> LineageOpen::drop_leftovers(const catalog::VersionRecord& record) {
  auto before = ChunkId::make(record.number, 0);
  while (true) {
    VersionNumber birth{};
    bool in_use = false;
    {
      VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts_.catalog));
      VARVE_TRY_ASSIGN(const auto last,
                       catalog::find_last_location_before(txn, parts_.store, before));
      if (!last) return {};
      birth = last->first.birth();
      VARVE_TRY_ASSIGN(const auto versions, layout::live_versions(txn, parts_.id));
      for (const auto& other : versions) {
        if (other.sealed && other.number >= birth) return {};
        if (other.sealed) continue;
        VARVE_TRY_ASSIGN(const auto kept, layout::protected_chunks(txn, parts_.id, other));
        for (const auto& run : kept.runs()) in_use = in_use || run.first.birth() == birth;
      }
    }
    if (!in_use) VARVE_TRY(store_.all->on_delete(birth));
    before = ChunkId::make(birth, 0);
  }
}

// Returns the chunks to which an unloaded version refers, by its staging folder.
Result<base::IdRuns> LineageOpen::stored_chunks(const catalog::VersionRecord& open,
                                                Ino base_end) const {
  return version::stored_references(
      *parts_.files, parts_.paths->staging(parts_.id, open.number),
      meta::overlay_keys(parts_.codecs->keys(), parts_.id, open.number), base_end);
}

// Returns the lowest ordinal above the version's own chunks to which its files refer. The catalog
// may know fewer chunks: after a repair, or if the catalog is older. A new chunk with the id of a
// lost chunk would give a file wrong contents.
Result<std::uint32_t> LineageOpen::ordinals_end(const catalog::VersionRecord& record) {
  Ino base_end = 0;
  if (record.base != VersionNumber{}) {
    VARVE_TRY_ASSIGN(const auto base, records_.find(record.base));
    base_end = base.entries + 2;
  }
  const auto chunks = stored_chunks(record, base_end);
  if (!chunks) {  // Files with a good record can be read all the same.
    base::log(base::LogLevel::kWarning,
              "cannot find the chunks of the open version: " + chunks.error().message());
    return 0U;
  }
  std::uint64_t end = 0;
  for (const auto& run : chunks->runs()) {
    if (run.first.birth() == record.number) {
      end = std::max(end, std::uint64_t{run.first.ordinal()} + run.count);
    }
  }
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(end, 0xffffffffU));
}

std::optional<std::uint64_t> LineageOpen::stored_entries(const catalog::VersionRecord& record) {
  if (stored_entries_ && stored_entries_->first == record.number) return stored_entries_->second;
  const auto entries = version::OpenVersion::entries_in(
      *parts_.files, parts_.paths->staging(parts_.id, record.number),
      meta::overlay_keys(parts_.codecs->keys(), parts_.id, record.number));
  if (entries && !parts_.options->read_only) stored_entries_.emplace(record.number, *entries);
  return entries;
}

// Loads an open version into memory, unless already loaded.
Result<void> LineageOpen::resume(const catalog::VersionRecord& record) {
  if (open_) return {};
  stored_entries_.reset();
  VARVE_TRY_ASSIGN(const auto owner, records_.owner());
  VARVE_TRY(drop_leftovers(record));
  VARVE_TRY(store_.all->begin_version(record.number));
  VARVE_TRY_ASSIGN(const auto ordinal, ordinals_end(record));
  store_.all->skip_to(ordinal);
  VARVE_TRY_ASSIGN(auto index, index_->load(record));
  index->count_in(parts_.metrics->index);
  version::OpenVersionParts parts;
  VARVE_TRY_ASSIGN(parts.base, load_base(record));
  parts.clock = parts_.clock;
  parts.files = parts_.files;
  parts.staging_directory = parts_.paths->staging(parts_.id, record.number);
  parts.chunker = parts_.writing.chunker;
  parts.fingerprinter = &parts_.codecs->fingerprinter();
  parts.keys = parts_.codecs->keys();
  VARVE_TRY_ASSIGN(parts.index, with_pool(record, index));
  parts.dedup_policy = dedup_policy_;
  parts.layout = store_.all.get();
  parts.read_service = parts_.read_service;
  parts.fingerprint_pool = parts_.writing.fingerprint_pool;
  parts.checkpoint_tasks = parts_.writing.checkpoint_tasks;
  parts.descriptors = parts_.writing.descriptors;
  parts.overlays = parts_.writing.overlays;
  parts.ingest_metrics = &parts_.metrics->ingest;
  parts.space = parts_.space;
  parts.checkpoint_interval_ms = parts_.options->checkpoint_interval_ms;
  parts.checkpoint_bytes = parts_.writing.checkpoint_bytes;
  parts.on_checkpoint = parts_.writing.on_checkpoint;
  NewFile root;
  root.mode = record.root.mode;
  root.uid = record.root.uid;
  root.gid = record.root.gid;
  VARVE_TRY_ASSIGN(open_,
                   version::OpenVersion::open(parts, version_info(record, owner.name), root));
  index_->use(std::move(index));
  return {};
}

Result<std::shared_ptr<index::FingerprintIndex>> LineageOpen::with_pool(
    const catalog::VersionRecord& record, std::shared_ptr<index::NeighbourIndex> neighbours) {
  VARVE_TRY_ASSIGN(const auto owner, records_.owner());
  if (owner.placement == Placement::kLineage) {
    dedup_policy_ = std::make_shared<ingest::AlwaysRefer>();
    return std::shared_ptr<index::FingerprintIndex>(std::move(neighbours));
  }
  VARVE_TRY_ASSIGN(auto* const pool, parts_.host->pool());
  VARVE_TRY_ASSIGN(auto* const index, pool->index());
  session_ =
      std::make_shared<PoolSession>(std::move(neighbours), *pool, *index,
                                    layout::PoolOwner{parts_.id, record.number}, owner.placement);
  VARVE_TRY_ASSIGN(dedup_policy_, pool_policy(parts_, owner));
  store_.all->set_on_synced([session = session_](VersionNumber birth, std::uint32_t chunks) {
    session->publish(birth, chunks);
  });
  return std::shared_ptr<index::FingerprintIndex>(session_);
}

// Removes the remains of the open version after the commit. A failure loses nothing; the next
// opening of the repository cleans up.
void LineageOpen::end(const catalog::VersionRecord& record) {
  release();
  auto removed = remove_staging(parts_, record);
  if (record.state == VersionState::kSealed) {
    auto others = remove_other_index_files(parts_, record.number);
    if (removed) removed = std::move(others);
  }
  if (!removed) {
    parts_.host->left_behind();
    base::log(base::LogLevel::kWarning, removed.error().message());
  }
}

// Drops a version after a failed copy. No caller has seen the version, so there are no handles. A
// failure here leaves an unfinished record, to be dropped by the next use of the series or the next
// opening.
Result<void> LineageOpen::drop_unfinished(const catalog::VersionRecord& record) {
  release();
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(*parts_.catalog));
  VARVE_TRY(catalog::erase_version(txn, parts_.id, record.number));
  VARVE_TRY(txn.commit());
  VARVE_TRY(remove_staging(parts_, record));
  auto dropped = store_.all->on_delete(record.number);
  end_in_pool(record.number);
  return dropped;
}

// Returns the base of a version that started as a clone; null for any other version.
Result<std::shared_ptr<const version::CloneBase>> LineageOpen::load_base(
    const catalog::VersionRecord& record) {
  if (record.base == VersionNumber{}) return std::shared_ptr<const version::CloneBase>();
  VARVE_TRY_ASSIGN(auto base, records_.find(record.base));
  if (base.state != VersionState::kSealed) {
    return Error(ErrorCode::kCorrupt, "catalog: a version is based on one that is not sealed");
  }
  std::optional<catalog::LinkTable> links;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts_.catalog));
    auto stored = catalog::version_links(txn, parts_.id, record.base);
    if (stored) {
      links = std::move(*stored);
    } else {
      base::log(base::LogLevel::kWarning, stored.error().message());
    }
  }
  if (!links) {
    VARVE_TRY_ASSIGN(links, catalog::LinkTable::collect(*store_.objects, base.root));
  }
  return std::make_shared<const version::CloneBase>(*store_.objects, std::move(base),
                                                    std::move(*links));
}

layout::OpenHold LineageOpen::hold(const base::IdRuns* dying) {
  // Chunks hidden from the index by the call; excludes chunks hidden before.
  base::IdRuns retired;
  const auto scan = [&]() -> Result<layout::OpenHold> {
    std::optional<catalog::VersionRecord> open;
    Ino base_end = 0;
    {
      VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts_.catalog));
      VARVE_TRY_ASSIGN(auto records, catalog::list_versions(txn, parts_.id));
      for (auto& record : records) {
        if (record.state == VersionState::kOpen && !record.unfinished) open = std::move(record);
      }
      if (!open) return layout::OpenHold{};
      if (open->base != VersionNumber{}) {
        VARVE_TRY_ASSIGN(const auto base, catalog::find_version(txn, parts_.id, open->base));
        if (!base) return Error(ErrorCode::kCorrupt, "the base of an open version is missing");
        base_end = base->entries + 2;
      }
    }
    if (open_) {
      VARVE_TRY_ASSIGN(auto chunks, open_->references([&] {
        if (dying != nullptr) retired = index_->retire(*dying);
      }));
      return layout::OpenHold{open->number, std::move(chunks)};
    }
    VARVE_TRY(check_staging(parts_, *open));
    VARVE_TRY_ASSIGN(auto chunks, stored_chunks(*open, base_end));
    return layout::OpenHold{open->number, std::move(chunks)};
  };
  auto found = scan();
  if (!found) {
    base::log(base::LogLevel::kWarning,
              "cannot find the chunks of the open version, so no chunk that it may use is freed: " +
                  found.error().message());
    index_->restore(retired);
    return {};
  }
  // Chunks with references stay, and the index may find such chunks again.
  index_->restore(retired.intersect(found->chunks));
  return *std::move(found);
}

Result<OpenChunks> LineageOpen::record_after(const meta::Txn& txn,
                                             const layout::DeletionPlan& plan) {
  OpenChunks before;
  VARVE_TRY_ASSIGN(const auto versions, layout::live_versions(txn, parts_.id));
  for (const auto& version : versions) {
    if (version.sealed) continue;
    VARVE_TRY_ASSIGN(before[version.number], layout::protected_chunks(txn, parts_.id, version));
  }
  return open_chunks_without(before, plan.dead);
}

void LineageOpen::end_in_pool(VersionNumber number) {
  auto* const pool = parts_.host->opened_pool();
  if (pool == nullptr) return;
  const auto containers = pool->store().unpin({parts_.id, number});
  const auto freed = parts_.with_reserve([&] { return pool->sweep(containers); });
  // The next opening of the repository frees the rest.
  if (!freed) base::log(base::LogLevel::kWarning, "pool: " + freed.error().message());
}

void LineageOpen::release() {
  if (open_) open_->stop();
  open_.reset();
  if (session_) {
    store_.all->set_on_synced({});
    session_->close();
    session_.reset();
  }
  index_->close();
}

Result<void> LineageOpen::sync() {
  if (!open_) return {};
  auto synced = open_->sync();
  if (synced) return {};
  const auto info = open_->info();
  const auto unsaved = open_->unsaved();
  return std::move(synced)
      .error()
      .with_context(info.series_name + "/" + info.name)
      .with_more("; " + std::to_string(unsaved.entries) + " changed entries and " +
                 std::to_string(unsaved.bytes) + " bytes of contents are not on disk");
}

}  // namespace varve::series
