// SPDX-License-Identifier: Apache-2.0
#include "remote/attach.h"

#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/coding.h"
#include "bucket/locking_bucket.h"
#include "io/posix_file_system.h"
#include "remote/attach_again.h"
#include "remote/attachment.h"
#include "remote/commit_log.h"
#include "remote/head.h"
#include "remote/store_probe.h"
#include "remote/takeover.h"
#include "store/repository_paths.h"
#include "store/superblock_text.h"

namespace varve::remote {

namespace {

// Marks an empty folder for attaching. Errors: kNotEmpty.
Result<void> begin_attaching(io::FileSystem& files, const std::string& folder) {
  VARVE_TRY_ASSIGN(const auto names, files.list(folder));
  for (const auto& name : names) {
    // A process may have been killed before beginning.
    if (name == "lost+found" || name == std::string(kUnfinishedAttach) + ".tmp") continue;
    return Error(ErrorCode::kNotEmpty, folder + " is not empty; choose an empty or a new folder");
  }
  return files.write_file_atomically(folder, kUnfinishedAttach, {});
}

}  // namespace

Result<void> attach_to_store(const StorePlace& place, const std::string& folder,
                             const OpenOptions& options, const BucketHooks& hooks, AttachRole role,
                             const ReadSuperblock& read_superblock) {
  const bool writes = role == AttachRole::kWrites;
  const auto config = config_of(place, !writes);
  const base::SystemClock system_clock;
  const base::Clock& clock = hooks.clock != nullptr ? *hooks.clock : system_clock;
  VARVE_TRY_ASSIGN(auto opened, bucket_opener(hooks, options.store.access)(config));
  const auto bucket = std::make_unique<bucket::LockingBucket>(std::move(opened), clock);
  VARVE_TRY(bucket->list({}, {}, 1));  // The errors of a list say the most.
  VARVE_TRY_ASSIGN(const auto first, superblock_in(*bucket));
  if (!first) {
    return Error(ErrorCode::kNoRepository, bucket->describe() + " has no Varve repository");
  }
  const auto read = read_superblock(*first);
  if (!read) {
    return read.error().code() == ErrorCode::kCorrupt ? damaged_superblock(*bucket) : read.error();
  }
  const auto& original = *read;
  CommitLog log(*bucket, original.repository_id);
  VARVE_TRY_ASSIGN(const auto newest, newest_head(log));
  VARVE_TRY_ASSIGN(const auto head, decode_head(newest));
  // The head has the present key slots.
  VARVE_TRY_ASSIGN(const auto superblock, read_superblock(head.superblock));
  if (superblock.repository_id != original.repository_id ||
      head.repository_id != original.repository_id) {
    return Error(ErrorCode::kCorrupt, bucket->describe() + " mixes two repositories");
  }
  VARVE_TRY_ASSIGN(const auto keys, format::unlock_superblock(superblock, head.superblock,
                                                              options.key, options.encrypted_only));
  VARVE_TRY(authenticate_head(newest, keys.get()));

  std::error_code failed;
  const auto parent = std::filesystem::path(folder).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, failed);
  VARVE_TRY(io::make_posix_file_system()->make_directory(folder));
  VARVE_TRY_ASSIGN(const auto files, store::open_folder(folder, options.trust_owner));
  const store::RepositoryPaths paths(folder);
  VARVE_TRY_ASSIGN(const bool exists, files->exists(paths.superblock()));
  if (exists) return attach_again(*bucket, *files, folder, config, newest);
  VARVE_TRY_ASSIGN(const bool unfinished, files->exists(folder + "/" + kUnfinishedAttach));
  if (!unfinished) VARVE_TRY(begin_attaching(*files, folder));
  VARVE_TRY_ASSIGN(const auto lock, files->lock(paths.lock()));
  // An interrupted takeover has changed the catalog already.
  if (unfinished) VARVE_TRY(forget_catalog(*files, folder));
  for (const auto& one : {paths.all_series(), paths.all_staging()}) {
    VARVE_TRY(files->make_durable_directory(one));
  }
  VARVE_TRY(advance_to(*bucket, *files, folder, newest));
  VARVE_TRY(write_config(*files, folder, config));
  if (keys) VARVE_TRY(compare_attached(folder, superblock.repository_id, keys, options));
  bucket::ProbeRecord probed;
  if (writes) {
    ProbeRequest probe;
    probe.open_client = racer_opener(hooks, options.store.access, config);
    VARVE_TRY_ASSIGN(probed, probe_store(*bucket, clock, probe));
    Takeover takeover;
    takeover.folder = folder;
    takeover.superblock_text = head.superblock;
    takeover.superblock = superblock;
    takeover.keys = keys;
    VARVE_TRY(take_over_writing(*bucket, *files, takeover, options, hooks));
  }
  const auto bytes = base::as_bytes(head.superblock);
  if (keys) VARVE_TRY(files->write_file_atomically(folder, "varve.keys", bytes));
  // Last: a folder without varve.repo is not a repository.
  VARVE_TRY(files->write_file_atomically(folder, "varve.repo", bytes));
  VARVE_TRY(files->remove(folder + "/" + kUnfinishedAttach));
  VARVE_TRY(files->sync_directory(folder));
  return note_first_use(*bucket, *files, folder, probed);
}

}  // namespace varve::remote
