// SPDX-License-Identifier: Apache-2.0
// Seals a version, in the following order: freeze the open version, write the tree's objects, tell
// the layout, save the index of the next window, write the manifest, commit, write the labels. The
// commit turns the open version into a sealed version; a crash before the commit leaves the open
// version.
#include "series/seal.h"

#include <memory>
#include <optional>
#include <utility>

#include "base/free_memory.h"
#include "base/log.h"
#include "catalog/chunk_references.h"
#include "catalog/clock_record.h"
#include "catalog/layout_records.h"
#include "catalog/object_store.h"
#include "catalog/pool_records.h"
#include "catalog/version_origin.h"
#include "layout/category_layout.h"
#include "layout/series_layout.h"
#include "series/lineage_index.h"
#include "series/lineage_open.h"
#include "series/lineage_store.h"
#include "series/pool.h"
#include "series/pool_seal.h"
#include "series/readers.h"
#include "series/seal_births.h"
#include "series/seal_clock.h"
#include "series/usage.h"
#include "varve/mount.h"
#include "varve/version_name.h"
#include "version/open_version.h"
#include "version/sealer.h"

namespace varve::series {

std::string replaced_name(const std::string& name, VersionNumber number) {
  const std::string suffix = ".replaced-" + std::to_string(static_cast<std::uint32_t>(number));
  return name.substr(0, kNameBytesMax - suffix.size()) + suffix;
}

Result<SealResult> VersionSeal::run(catalog::VersionRecord record, const SealRequest& how) {
  const std::string name(how.name.empty() ? without_partial_suffix(record.name) : how.name);
  VARVE_TRY(check_version_name(name, VersionState::kSealed));
  std::optional<catalog::VersionRecord> next;
  std::optional<catalog::VersionRecord> old;
  if (record.replaces && how.may_replace && how.mode == SealMode::kEnd) {
    VARVE_TRY_ASSIGN(auto base, records_.find(record.base));
    if (base.name == name) old = std::move(base);
  }
  if (old) {
    // The version may have been locked after the reopening.
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts_.catalog));
    VARVE_TRY_ASSIGN(auto locked, lock_of(parts_, txn, *old, false));
    if (locked) {
      return std::move(*locked).with_context("the seal would replace " + name +
                                             "; give it another name with --as");
    }
    old->name = replaced_name(name, old->number);
    VARVE_TRY(records_.check_new_name(old->name));
  } else if (name != record.name) {
    VARVE_TRY(records_.check_new_name(name));
  } else if (how.mode == SealMode::kKeep) {
    return Error(ErrorCode::kExists,
                 record.name + " is the name of the version that stays open; choose another name");
  }
  VARVE_TRY(parts_.with_reserve([&] { return open_.version()->freeze(how.writers); }));
  if (how.mode == SealMode::kKeep) {
    next.emplace();
    next->series = record.series;
    next->name = record.name;
    next->base = record.number;
  }
  record.name = name;
  SealResult result;
  const auto before = record;
  const auto next_before = next;
  auto committed = parts_.with_reserve([&] {
    record = before;
    next = next_before;
    return commit(record, next ? &*next : nullptr, old ? &*old : nullptr, result.outcome);
  });
  if (!committed) {
    open_.version()->thaw();
    return std::move(committed).error();
  }
  open_.end(record);
  open_.end_in_pool(record.number);
  if (auto* const shared = parts_.host->opened_pool()) shared->save_index();
  base::return_free_memory();
  if (old) {
    result.replaced = old->number;
    readers_.forget(old->number);  // The next reader gets the new name.
  }
  parts_.space->keep_reserve();
  if (next) {
    // The commit is done, so a failure here does not fail the seal; the next use tries again.
    const auto resumed = open_.resume(*next);
    if (!resumed) base::log(base::LogLevel::kWarning, resumed.error().message());
  }
  parts_.host->replicate_soon();
  parts_.host->arrange_soon(parts_.id);
  return result;
}

struct VersionSeal::Built {
  version::SealedTree tree;
  catalog::VersionReferences references;
  std::uint64_t objects = 0;  ///< Number of new objects.
};

Result<VersionSeal::Built> VersionSeal::build(const catalog::VersionRecord& record) {
  const auto* base = open_.version()->base();
  bool count_changes = false;
  if (base != nullptr) {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts_.catalog));
    count_changes = catalog::has_references(txn, parts_.id, base->record().number);
  }
  auto built = build(record, count_changes);
  if (built || !count_changes || built.error().code() != ErrorCode::kCorrupt) return built;
  base::log(base::LogLevel::kWarning,
            "sealing: counting all files again: " + built.error().message());
  return build(record, false);
}

Result<VersionSeal::Built> VersionSeal::build(const catalog::VersionRecord& record,
                                              bool count_changes) {
  VARVE_TRY_ASSIGN(const auto parent, records_.newest_sealed());
  catalog::ObjectWriter objects(*parts_.catalog, *store_.objects, parts_.id, record.number);
  const auto* base = open_.version()->base();
  VARVE_TRY_ASSIGN(const auto overlay, open_.version()->overlay());
  version::Sealer sealer(*overlay, *store_.objects, objects, parent ? &parent->root : nullptr, base,
                         count_changes);
  Built built;
  VARVE_TRY_ASSIGN(built.tree, sealer.seal());
  built.objects = objects.new_objects();
  if (!built.tree.counts_changes) {
    built.references = catalog::VersionReferences::of_all(std::move(built.tree.references));
    return built;
  }
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts_.catalog));
  VARVE_TRY_ASSIGN(built.references,
                   catalog::VersionReferences::of_changes(txn, parts_.id, base->record().number,
                                                          std::move(built.tree.references)));
  return built;
}

// Follows docs/ORDERING.md O3 and O4: objects, chunks and the index snapshot first, then one
// commit.
Result<void> VersionSeal::commit(catalog::VersionRecord& record, catalog::VersionRecord* next,
                                 const catalog::VersionRecord* replaced, SealOutcome& outcome) {
  VARVE_TRY_ASSIGN(auto built, build(record));
  auto& tree = built.tree;
  auto chunks = built.references.chunks();
  if (tree.damaged) {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts_.catalog));
    const auto all = catalog::version_chunks(txn, parts_.id, record.base);
    if (all) chunks = chunks.unite(*all);
  }
  VARVE_TRY(store_.all->on_seal(record.number, chunks));
  VARVE_TRY_ASSIGN(const auto births, SealBirths::begin(parts_, *store_.all, record, chunks));
  record.entries = tree.entries;
  record.logical_bytes = tree.logical_bytes;
  VARVE_TRY_ASSIGN(const bool side, open_.index().save_window(record, chunks));
  catalog::inherit_incomplete(tree.root.xattrs, record.base, record.number);
  if (tree.damaged) catalog::mark_incomplete(tree.root.xattrs, record.number);
  record.state = VersionState::kSealed;
  record.base = VersionNumber{};
  record.replaces = false;
  record.root = std::move(tree.root);
  VARVE_TRY_ASSIGN(const auto clock, choose_seal_time(parts_, record, outcome.warning));
  VARVE_TRY(measure_version(parts_, record));
  VARVE_TRY_ASSIGN(const auto manifest, manifests_.begin(record, built.objects));
  const auto* const base = open_.version()->base();
  VARVE_TRY_ASSIGN(auto pool, PoolSeal::begin(parts_, record, chunks,
                                              base != nullptr ? std::optional(base->record().number)
                                                              : std::nullopt));
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(*parts_.catalog));
  VARVE_TRY_ASSIGN(auto owner, catalog::find_series(txn, parts_.id));
  if (!owner) return Error(ErrorCode::kCorrupt, "the series' record is missing");
  VARVE_TRY(catalog::put_version_chunks(txn, parts_.id, record.number, chunks));
  VARVE_TRY(tree.damaged ? catalog::erase_references(txn, parts_.id)
                         : built.references.put(txn, parts_.id, record.number));
  VARVE_TRY(catalog::put_version_links(txn, parts_.id, record.number, tree.links));
  VARVE_TRY(catalog::put_retention(txn, parts_.id, record.number, {side, {}}));
  if (replaced != nullptr) VARVE_TRY(catalog::put_version(txn, *replaced));
  VARVE_TRY(catalog::put_version(txn, record));
  VARVE_TRY(catalog::put_clock_record(txn, clock));
  VARVE_TRY(pool.commit(txn));
  VARVE_TRY(births.commit(txn));
  const auto counts = open_.rewrite_counts();
  if (counts != RewriteCounts() || catalog::pool_part(chunks).size() != 0) {
    VARVE_TRY(catalog::put_rewrite_counts(txn, parts_.id, record.number, counts));
  }
  VARVE_TRY(manifest->commit(txn));
  if (next != nullptr) {
    VARVE_TRY_ASSIGN(next->number, catalog::take_version_number(txn, *owner));
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
  parts_.metrics->pool.sparse_containers.add(counts.sparse_containers);
  std::vector<VersionNumber> changed{record.number};
  if (replaced != nullptr) changed.push_back(replaced->number);
  if (next != nullptr) changed.push_back(next->number);
  manifests_.labels().change(changed);
  outcome.info = version_info(record, owner->name);
  outcome.rank_of = std::make_shared<const RankTable>(std::move(tree.rank_of));
  return {};
}

}  // namespace varve::series
