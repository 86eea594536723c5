// SPDX-License-Identifier: Apache-2.0
// Creates a repository in an object store, and attaches folders to an existing repository.
#include <fmt/core.h>

#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/coding.h"
#include "bucket/abilities.h"
#include "format/superblock.h"
#include "ingest/parameters.h"
#include "io/posix_file_system.h"
#include "remote/attach_again.h"
#include "remote/attachment.h"
#include "remote/bucket_config.h"
#include "remote/bucket_hooks.h"
#include "remote/head.h"
#include "remote/object_lock_setting.h"
#include "remote/replica_state.h"
#include "remote/store_probe.h"
#include "remote/takeover.h"
#include "repo/create_repository.h"
#include "repo/repository_impl.h"
#include "repo/store_repository.h"
#include "store/repository_paths.h"
#include "store/superblock_text.h"
#include "varve/replication.h"
#include "varve/repository.h"

namespace varve::repo {

namespace {

remote::BucketConfig config_of(const StorePlace& place, bool reads_only) {
  remote::BucketConfig config;
  config.place = place.place;
  config.endpoint = place.endpoint;
  config.region = place.region;
  if (!reads_only) config.volume_class = place.volume_class;
  config.cache_bytes = place.cache_bytes;
  config.staging_bytes = place.staging_bytes;
  config.reads_only = reads_only;
  return config;
}

// A reading folder cannot repair the object.
Error damaged_superblock(const bucket::Bucket& bucket) {
  return {ErrorCode::kCorrupt,
          fmt::format("{}/{} is damaged; `varve repair` in the folder that writes, on the machine "
                      "that has it, puts it back",
                      bucket.describe(), remote::kSuperblockName)};
}

Result<std::optional<std::string>> superblock_in(bucket::Bucket& bucket) {
  const auto bytes = bucket.get_all(remote::kSuperblockName, format::kSuperblockBytesMax);
  if (bytes) return std::optional(std::string(base::as_text(*bytes)));
  if (bytes.error().code() == ErrorCode::kNotFound) return std::optional<std::string>();
  if (bytes.error().code() == ErrorCode::kCorrupt) return damaged_superblock(bucket);
  return bytes.error();
}

Error taken(const bucket::Bucket& bucket) {
  return {ErrorCode::kExists,
          bucket.describe() + " has a Varve repository already; `varve attach` reads it"};
}

// Begins to count the folder's requests, and notes the result of the probe, if the store was
// probed.
Result<void> note_first_use(const bucket::Bucket& bucket, io::FileSystem& files,
                            const std::string& folder, const bucket::ProbeRecord& probed) {
  VARVE_TRY_ASSIGN(auto state, remote::ReplicaState::open(files, folder, false));
  if (probed.seconds != 0) VARVE_TRY(remote::set_probe_record(state, probed));
  return state.add_traffic(bucket.traffic());
}

// Arranging uploads the rewritten data, so a repository in a store tolerates more dead space than a
// local repository. docs/decisions/117.
CreateOptions with_store_defaults(CreateOptions options) {
  if (!options.settings.arrange) {
    options.settings.arrange = ArrangeSettings{.dead_permille = kStoreDeadPermille};
  }
  return options;
}

// Returns whether the folder is a repository left unconnected by an interrupted creation.
Result<bool> is_unconnected(const std::string& folder, bool trust_owner) {
  const auto files = store::open_folder(folder, trust_owner);
  if (!files && files.error().code() == ErrorCode::kNoRepository) return false;
  if (!files) return files.error();
  VARVE_TRY_ASSIGN(const bool exists,
                   (*files)->exists(store::RepositoryPaths(folder).superblock()));
  if (!exists) return false;
  VARVE_TRY_ASSIGN(const bool connecting, remote::is_connecting(**files, folder));
  if (connecting) return true;
  VARVE_TRY_ASSIGN(const auto config, remote::read_config(**files, folder));
  if (config) return Error(ErrorCode::kExists, folder + " is a repository in " + config->place);
  VARVE_TRY_ASSIGN(const bool used, (*files)->exists(folder + "/series/00000001"));
  if (used) return Error(ErrorCode::kExists, folder + " is a Varve repository already");
  return true;
}

// A repository left by an interrupted creation has the keys of that creation. Errors unless the
// first key of `options` opens the repository.
Result<void> check_first_key(const std::string& text, const std::string& folder,
                             const CreateOptions& options) {
  if (!options.encryption) return {};
  VARVE_TRY_ASSIGN(const auto superblock, ingest::read_superblock(text));
  const auto key = [&] { return Result<UserKey>(options.encryption->first_key.key); };
  const auto keys = format::unlock_superblock(superblock, text, key, true);
  if (keys) return {};
  return Error(keys.error())
      .with_context(
          folder +
          " is a repository without data, which cannot be created in the store as wanted; "
          "remove it, or choose another folder");
}

}  // namespace

Result<void> create_in_store(const StorePlace& place, const std::string& folder,
                             const RepositoryParameters& parameters, const CreateOptions& options,
                             const remote::BucketHooks& hooks, const ObjectLock& lock) {
  const auto config = config_of(place, false);
  VARVE_TRY(remote::check_volume_class(config.volume_class));
  const base::SystemClock system_clock;
  const base::Clock& clock = hooks.clock != nullptr ? *hooks.clock : system_clock;
  VARVE_TRY_ASSIGN(auto opened, remote::bucket_opener(hooks, options.store_access)(config));
  const auto bucket = std::make_unique<bucket::LockingBucket>(std::move(opened), clock);
  VARVE_TRY(bucket->list({}, {}, 1));  // Its errors say more than those of other requests.
  VARVE_TRY_ASSIGN(const auto present, superblock_in(*bucket));
  VARVE_TRY_ASSIGN(const bool unconnected, is_unconnected(folder, options.trust_owner));
  if (present && !unconnected) return taken(*bucket);
  bucket::ProbeRecord probed;
  if (!present) {
    VARVE_TRY_ASSIGN(probed, remote::probe_store(*bucket, lock, clock, remote::LockProbe::kAlways));
    const auto& abilities = probed.abilities;
    if (abilities.conditions != bucket::Conditions::kHonoured) {
      return Error(ErrorCode::kUnsupported,
                   bucket->describe() +
                       " does not honour conditional requests (If-None-Match), so two writers "
                       "could harm each other; use another store" +
                       (abilities.keeps_versions
                            ? ", or a bucket without versions: some stores ignore the condition in "
                              "a bucket that keeps versions, as each one with object lock does"
                            : ""));
    }
  }
  if (!unconnected) {
    VARVE_TRY(create_repository(
        folder, parameters, with_store_defaults(options),
        [&](io::FileSystem& made) { return remote::note_connecting(made, folder); }));
  }
  VARVE_TRY_ASSIGN(const auto files, store::open_folder(folder, options.trust_owner));
  VARVE_TRY_ASSIGN(const auto text, store::read_superblock_text(*files, folder));
  if (unconnected) VARVE_TRY(check_first_key(text, folder, options));
  if (lock.on()) {
    VARVE_TRY_ASSIGN(const auto superblock, ingest::read_superblock(text));
    KeySource key;
    if (options.encryption) {
      key = [&] { return Result<UserKey>(options.encryption->first_key.key); };
    }
    VARVE_TRY_ASSIGN(auto keys, format::unlock_superblock(superblock, text, key, false));
    VARVE_TRY_ASSIGN(auto whole, store::open_folder(folder, options.trust_owner));
    VARVE_TRY(remote::put_first_lock(std::move(whole), folder, std::move(keys), lock));
    bucket->set_rule(lock);
  }
  const std::array<std::span<const std::byte>, 1> bytes{base::as_bytes(text)};
  const auto put = bucket->put(remote::kSuperblockName, bytes,
                               {.condition = bucket::PutCondition::kIfAbsent});  // O45
  if (!put && put.error().code() != ErrorCode::kExists) return put;
  VARVE_TRY_ASSIGN(const auto now, superblock_in(*bucket));
  if (now != text) return taken(*bucket).with_more(". The folder " + folder + " can be removed");
  VARVE_TRY(remote::write_config(*files, folder, config));
  VARVE_TRY(remote::note_connected(*files, folder));
  VARVE_TRY(remote::open_copy(*files, folder, false));  // Goes together with the state.
  return note_first_use(*bucket, *files, folder, probed);
}

Result<void> attach_to_store(const StorePlace& place, const std::string& folder,
                             const OpenOptions& options, const remote::BucketHooks& hooks,
                             AttachRole role) {
  const bool writes = role == AttachRole::kWrites;
  const auto config = config_of(place, !writes);
  const base::SystemClock system_clock;
  VARVE_TRY_ASSIGN(auto opened, remote::bucket_opener(hooks, options.store.access)(config));
  const auto bucket = std::make_unique<bucket::LockingBucket>(
      std::move(opened), hooks.clock != nullptr ? *hooks.clock : system_clock);
  VARVE_TRY(bucket->list({}, {}, 1));  // Its errors say more than those of other requests.
  VARVE_TRY_ASSIGN(const auto first, superblock_in(*bucket));
  if (!first) {
    return Error(ErrorCode::kNoRepository, bucket->describe() + " has no Varve repository");
  }
  const auto read = ingest::read_superblock(*first);
  if (!read) {
    return read.error().code() == ErrorCode::kCorrupt ? damaged_superblock(*bucket) : read.error();
  }
  const auto& original = *read;
  remote::CommitLog log(*bucket, original.repository_id);
  VARVE_TRY_ASSIGN(const auto newest, remote::newest_head(log));
  VARVE_TRY_ASSIGN(const auto head, remote::decode_head(newest));
  // The head has the present key slots.
  VARVE_TRY_ASSIGN(const auto superblock, ingest::read_superblock(head.superblock));
  if (superblock.repository_id != original.repository_id ||
      head.repository_id != original.repository_id) {
    return Error(ErrorCode::kCorrupt, bucket->describe() + " mixes two repositories");
  }
  VARVE_TRY_ASSIGN(const auto keys, format::unlock_superblock(superblock, head.superblock,
                                                              options.key, options.encrypted_only));
  VARVE_TRY(remote::authenticate_head(newest, keys.get()));

  std::error_code failed;
  const auto parent = std::filesystem::path(folder).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, failed);
  VARVE_TRY(io::make_posix_file_system()->make_directory(folder));
  VARVE_TRY_ASSIGN(const auto files, store::open_folder(folder, options.trust_owner));
  const store::RepositoryPaths paths(folder);
  VARVE_TRY_ASSIGN(const bool exists, files->exists(paths.superblock()));
  if (exists) return remote::attach_again(*bucket, *files, folder, config, newest);
  VARVE_TRY_ASSIGN(const bool unfinished, files->exists(folder + "/" + remote::kUnfinishedAttach));
  if (!unfinished) {
    VARVE_TRY_ASSIGN(const auto names, files->list(folder));
    for (const auto& name : names) {
      // A process may have been killed before beginning.
      if (name == "lost+found" || name == std::string(remote::kUnfinishedAttach) + ".tmp") continue;
      return Error(ErrorCode::kNotEmpty, folder + " is not empty; choose an empty or a new folder");
    }
    VARVE_TRY(files->write_file_atomically(folder, remote::kUnfinishedAttach, {}));
  }
  VARVE_TRY_ASSIGN(const auto lock, files->lock(paths.lock()));
  // An interrupted takeover has changed the catalog already.
  if (unfinished) VARVE_TRY(remote::forget_catalog(*files, folder));
  for (const auto& one : {paths.all_series(), paths.all_staging()}) {
    VARVE_TRY(files->make_durable_directory(one));
  }
  VARVE_TRY(remote::advance_to(*bucket, *files, folder, newest));
  VARVE_TRY(remote::write_config(*files, folder, config));
  if (keys) VARVE_TRY(remote::compare_attached(folder, superblock.repository_id, keys, options));
  if (writes) {
    remote::Takeover takeover;
    takeover.folder = folder;
    takeover.superblock_text = head.superblock;
    takeover.superblock = superblock;
    takeover.keys = keys;
    VARVE_TRY(remote::take_over_writing(*bucket, *files, takeover, options, hooks));
  }
  const auto bytes = base::as_bytes(head.superblock);
  if (keys) VARVE_TRY(files->write_file_atomically(folder, "varve.keys", bytes));
  // Last: a folder without varve.repo is not a repository.
  VARVE_TRY(files->write_file_atomically(folder, "varve.repo", bytes));
  VARVE_TRY(files->remove(folder + "/" + remote::kUnfinishedAttach));
  VARVE_TRY(files->sync_directory(folder));
  return note_first_use(*bucket, *files, folder, {});
}

}  // namespace varve::repo

namespace varve {

Result<void> create_in_store(const StorePlace& place, const std::string& folder,
                             const RepositoryParameters& parameters, const CreateOptions& options,
                             const ObjectLock& lock) {
  return repo::create_in_store(place, folder, parameters, options, {}, lock);
}

Result<void> attach_to_store(const StorePlace& place, const std::string& folder,
                             const OpenOptions& options, AttachRole role) {
  return repo::attach_to_store(place, folder, options, {}, role);
}

Result<void> follow_store(Repository& repository, std::chrono::milliseconds interval) {
  auto* const opened = dynamic_cast<repo::RepositoryImpl*>(&repository);
  return opened == nullptr ? Result<void>() : opened->follow(interval);
}

void end_store_reads(Repository& repository) {
  auto* const opened = dynamic_cast<repo::RepositoryImpl*>(&repository);
  if (opened != nullptr) opened->end_store_reads();
}

Result<std::optional<StoreLease>> store_lease(Repository& repository) {
  auto* const opened = dynamic_cast<repo::RepositoryImpl*>(&repository);
  return opened == nullptr ? std::optional<StoreLease>() : opened->store_lease();
}

bool is_fenced(Repository& repository) {
  const auto* const opened = dynamic_cast<repo::RepositoryImpl*>(&repository);
  return opened != nullptr && opened->is_fenced();
}

}  // namespace varve
