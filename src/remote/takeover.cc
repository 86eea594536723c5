// SPDX-License-Identifier: Apache-2.0
#include "remote/takeover.h"

#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/coding.h"
#include "base/log.h"
#include "base/random_bytes.h"
#include "catalog/sequence_record.h"
#include "catalog/series_catalog.h"
#include "format/data_codecs.h"
#include "io/client_memory.h"
#include "maintain/manifest_file.h"
#include "meta/lmdb.h"
#include "meta/open_catalog.h"
#include "meta/schema.h"
#include "remote/begun_takeover.h"
#include "remote/changes.h"
#include "remote/head_objects.h"
#include "remote/left_files.h"
#include "remote/local_notes.h"
#include "remote/object_lock_setting.h"
#include "remote/replica_state.h"
#include "remote/replicator.h"
#include "store/repository_names.h"
#include "store/repository_paths.h"
#include "store/sealed_places.h"
#include "store/superblock_text.h"

namespace varve::remote {

namespace {

// Makes the writer's copy of the catalog. The next heads are compared with the copy.
Result<void> copy_catalog(io::FileSystem& files, const std::string& folder) {
  ChangeWriter changes;
  {
    auto options = meta::catalog_options(store::RepositoryPaths(folder).lock(), nullptr);
    options.read_only = true;
    options.without_keys = true;
    VARVE_TRY_ASSIGN(const auto catalog, meta::Env::open(files, folder + "/catalog", options));
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
    VARVE_TRY(write_catalog(txn, changes));
  }
  VARVE_TRY_ASSIGN(const auto copy, open_copy(files, folder, false));
  return apply_to_catalog(copy, changes.finish(), true);
}

// The changes of an open version are only on the writing machine. Without the changes, the open
// version is damaged.
Result<void> drop_open_versions(meta::WriteTxn& txn) {
  VARVE_TRY_ASSIGN(const auto all, catalog::list_series(txn));
  for (const auto& series : all) {
    VARVE_TRY_ASSIGN(const auto versions, catalog::list_versions(txn, series.id));
    for (const auto& version : versions) {
      if (version.state == VersionState::kSealed) continue;
      base::log(base::LogLevel::kWarning,
                series.name + "/" + version.name +
                    " was open on the machine that wrote before; its changes are not in the store");
      VARVE_TRY(catalog::erase_version(txn, series.id, version.number));
    }
  }
  return {};
}

// The new writer's catalog counts commits separately, so the catalog gets a new id, as a rebuilt
// catalog does, and the labels get the catalog's stamps (docs/ORDERING.md O22, O23).
Result<void> begin_catalog(io::FileSystem& files, const Takeover& takeover,
                           const meta::Env& catalog) {
  VARVE_TRY_ASSIGN(const auto id, base::random_bytes<16>());
  {
    VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog));
    VARVE_TRY(drop_open_versions(txn));
    VARVE_TRY(txn.put(meta::catalog::kSettings, maintain::kCatalogIdSetting, base::as_text(id)));
    VARVE_TRY(txn.commit());
  }
  const format::DataCodecs codecs(takeover.superblock.parameters, takeover.keys);
  // Labels have the superblock without the key slots.
  const auto superblock = format::encode_superblock(takeover.superblock);
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
  VARVE_TRY_ASSIGN(const auto all, catalog::list_series(txn));
  for (const auto& series : all) {
    const auto series_folder = store::RepositoryPaths(takeover.folder).series(series.id);
    VARVE_TRY_ASSIGN(const auto removed,
                     maintain::removed_versions(txn, files, series_folder, series.id));
    VARVE_TRY_ASSIGN(const auto labels, maintain::encode_labels(txn, codecs.frames(), series.id,
                                                                superblock, {.removed = &removed}));
    VARVE_TRY(maintain::write_labels(files, series_folder, labels));
  }
  return {};
}

}  // namespace

Result<void> take_over_writing(bucket::LockingBucket& bucket, io::FileSystem& files,
                               const Takeover& takeover, const OpenOptions& options,
                               const BucketHooks& hooks) {
  const auto& folder = takeover.folder;
  {
    // The first head drops the files that the folder lacks.
    VARVE_TRY_ASSIGN(const auto state, ReplicaState::open(files, folder, false));
    VARVE_TRY(fetch_left_files(bucket, files, folder, state));
    const auto& left = takeover.left_objects;
    const base::SystemClock now_clock;
    VARVE_TRY(state.garbage().add({left.begin(), left.end()}, now_clock.now().seconds,
                                  takeover.heads_passed + 1));
  }
  VARVE_TRY(copy_catalog(files, folder));
  std::unique_ptr<LocalNotes> notes;
  if (takeover.notes_begin) {
    VARVE_TRY_ASSIGN(notes, LocalNotes::load(files, folder));
    VARVE_TRY_ASSIGN(auto state, ReplicaState::open(files, folder, false));
    VARVE_TRY(note_begun_takeover(state));  // O68
  }
  VARVE_TRY_ASSIGN(auto opened, store::open_folder(folder, options.trust_owner));
  const auto sealed = store::seal_files(std::move(opened), takeover.keys, folder);
  VARVE_TRY_ASSIGN(
      const auto catalog,
      meta::Env::open(*sealed, folder + "/catalog",
                      meta::catalog_options(store::RepositoryPaths(folder).lock(), takeover.keys)));
  const base::SystemClock system_clock;
  const base::Clock& clock = hooks.clock != nullptr ? *hooks.clock : system_clock;
  VARVE_TRY_ASSIGN(const auto lock, object_lock_of(catalog));
  VARVE_TRY(require_locks(bucket, lock, clock));
  bucket.set_rule(lock);
  VARVE_TRY(begin_catalog(*sealed, takeover, catalog));
  ReplicatorParts parts;
  parts.root = folder;
  parts.files = &files;
  parts.catalog = &catalog;
  parts.bucket = &bucket;
  parts.clock = &clock;
  parts.repository_id = takeover.superblock.repository_id;
  parts.superblock = [&] { return Result<std::string>(takeover.superblock_text); };
  parts.keys = takeover.keys;
  parts.extent_bytes_max = hooks.extent_bytes_max;
  parts.delta_bytes_min = hooks.delta_bytes_min;
  parts.heads_passed = takeover.heads_passed;
  parts.notes_catalog_objects = true;
  parts.notes = notes.get();
  VARVE_TRY_ASSIGN(const auto replicator, Replicator::open(std::move(parts)));
  const auto done = replicator->replicate();
  if (done) return {};
  if (done.error().code() != ErrorCode::kLocked) return done.error();
  return Error(done.error())
      .with_more(". If that folder is given up, run the same command again: it takes over then");
}

Result<void> compare_attached(const std::string& folder, const std::string& id,
                              const std::shared_ptr<const crypto::KeyRing>& keys,
                              const OpenOptions& options) {
  VARVE_TRY_ASSIGN(auto opened, store::open_folder(folder, options.trust_owner));
  const auto files = store::seal_files(std::move(opened), keys, folder);
  auto how = meta::catalog_options(store::RepositoryPaths(folder).lock(), keys);
  how.read_only = true;
  VARVE_TRY_ASSIGN(const auto catalog, meta::Env::open(*files, folder + "/catalog", how));
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
  VARVE_TRY_ASSIGN(const auto present, catalog::find_sequence(txn));
  io::ClientMemory memory(options.memory_folder, id);
  if (options.accept_older) return memory.accept(present);
  return io::refuse_older(memory, folder, [&] { return Result<std::uint64_t>(present); });
}

Result<void> forget_catalog(io::FileSystem& files, const std::string& folder) {
  for (const auto* const name : {"/catalog", "/replica/state", "/replica/catalog"}) {
    VARVE_TRY(store::remove_folder(files, folder + name, store::FolderKind::kEnvironment));
  }
  return {};
}

}  // namespace varve::remote
