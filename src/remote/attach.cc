// SPDX-License-Identifier: Apache-2.0
#include "remote/attach.h"

#include <fmt/core.h>

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/coding.h"
#include "base/log.h"
#include "bucket/locking_bucket.h"
#include "io/posix_file_system.h"
#include "remote/attach_again.h"
#include "remote/attachment.h"
#include "remote/catalog_reads.h"
#include "remote/commit_log.h"
#include "remote/head.h"
#include "remote/newer_objects.h"
#include "remote/promotion.h"
#include "remote/readable_head.h"
#include "remote/replica_state.h"
#include "remote/store_probe.h"
#include "remote/takeover.h"
#include "remote/unfinished_rebuild.h"
#include "store/repository_paths.h"
#include "store/superblock_text.h"
#include "varve/copy_name.h"

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

// Returns the catalog objects that an interrupted takeover of the folder has uploaded.
std::set<std::string> left_by_takeover(const std::string& folder, const OpenOptions& options) {
  const auto files = store::open_folder(folder, options.trust_owner);
  if (!files) return {};
  const auto unfinished = (*files)->exists(folder + "/" + kUnfinishedAttach);
  return unfinished && *unfinished ? noted_garbage(**files, folder) : std::set<std::string>();
}

// A lost head that no list shows is a loss, too. docs/decisions/161.
Result<void> require_no_lost_head(bucket::Bucket& bucket, CommitLog& log, const Head& head,
                                  const OpenOptions& options, Takeover& takeover) {
  VARVE_TRY_ASSIGN(const auto lost,
                   find_lost_head(bucket, log, head, {.own = takeover.left_objects}));
  if (!lost) return {};
  takeover.heads_passed += kLostHeadsMax;
  if (options.accept_older) {
    base::log(base::LogLevel::kWarning, lost->message());
    return {};
  }
  return Error(*lost).with_more(
      fmt::format(". `varve repair` in the folder that writes, or in one that is attached and has "
                  "the lost head, puts it back. Without such a folder, `varve --accept-older "
                  "attach --write` goes on from head {}: versions that only the lost head had are "
                  "lost",
                  head.number));
}

// A reading folder may be all that is left, so the user must hear that it lacks versions.
Result<void> warn_of_lost_head(bucket::Bucket& bucket, CommitLog& log, const Head& head,
                               const base::Clock& clock) {
  constexpr std::int64_t kUploadSeconds = 3600;  // Between catalog objects and their head, at most.
  NoEvidence none;
  none.uploaded_after = clock.now().seconds + bucket.clock_ahead().value_or(0) - kUploadSeconds;
  VARVE_TRY_ASSIGN(const auto lost, find_lost_head(bucket, log, head, none));
  if (!lost) return {};
  base::log(base::LogLevel::kWarning,
            lost->message() +
                ". The folder shows the older state. `varve repair` in the folder "
                "that writes, or in one that has the lost head, puts a lost head back");
  return {};
}

// A writer goes on from an older state only if the user accepts the loss.
Result<void> require_newest(const bucket::Bucket& bucket, const ReadableHead& found,
                            const OpenOptions& options) {
  if (!found.fault || options.accept_older) return {};
  return Error(ErrorCode::kCorrupt,
               fmt::format("{}: head {} is the newest whole state, and head {} is lost. `varve "
                           "repair` in the folder that writes uploads the lost objects again. "
                           "Without that folder, `varve --accept-older attach --write` goes on "
                           "from head {}: the versions sealed since are lost",
                           bucket.describe(), found.number, found.newest, found.number));
}

// Adds advice to the lack of all heads, if the store has data of the repository.
Error with_rebuild(bucket::Bucket& bucket, const std::string& repository_id, const Error& lack) {
  if (lack.code() != ErrorCode::kNoRepository && !is_loss(lack)) return lack;
  const auto listed = bucket.list(repository_id + "/other/", {}, 1);
  if (!listed || listed->objects.empty()) return lack;
  return Error(lack).with_more(
      "; if the store has lost its heads, `varve repair` in the folder that writes puts the newest "
      "one back. Without that folder, and without an attached one, `varve attach --rebuild` "
      "rebuilds the catalog from the data");
}

}  // namespace

Result<void> attach_to_store(const StorePlace& place, const std::string& folder,
                             const OpenOptions& options, const BucketHooks& hooks, AttachRole role,
                             const ReadSuperblock& read_superblock) {
  const bool writes = role == AttachRole::kWrites;
  if (writes) {
    VARVE_TRY_ASSIGN(const bool is_reader, is_reader_folder(folder, options.trust_owner));
    if (is_reader) return promote({folder, place.place, read_superblock}, options, hooks);
  }
  const auto config = config_of(place, !writes);
  const base::SystemClock system_clock;
  const base::Clock& clock = hooks.clock != nullptr ? *hooks.clock : system_clock;
  VARVE_TRY_ASSIGN(auto opened, bucket_opener(hooks, options.store.access)(config));
  const auto bucket = std::make_unique<bucket::LockingBucket>(std::move(opened), clock);
  // The errors of a list say the most.
  VARVE_TRY_ASSIGN(const auto listed, bucket->list({}, {}, 1));
  VARVE_TRY_ASSIGN(const auto repository_id, repository_in(*bucket, listed, read_superblock));
  CommitLog log(*bucket, repository_id);
  auto readable = readable_head(log);
  if (!readable) return with_rebuild(*bucket, repository_id, readable.error());
  auto found = *std::move(readable);
  auto newest = found.text;
  VARVE_TRY_ASSIGN(auto head, decode_head(newest));
  // The head has the present key slots.
  VARVE_TRY_ASSIGN(auto superblock, read_superblock(head.superblock));
  if (superblock.repository_id != repository_id || head.repository_id != repository_id) {
    return Error(ErrorCode::kCorrupt, bucket->describe() + " mixes two repositories");
  }
  VARVE_TRY_ASSIGN(const auto keys, format::unlock_superblock(superblock, head.superblock,
                                                              options.key, options.encrypted_only));
  VARVE_TRY(authenticate_head(newest, keys.get()));
  Takeover takeover;
  takeover.heads_passed = found.newest;
  if (writes) {
    VARVE_TRY(require_newest(*bucket, found, options));
    takeover.left_objects = left_by_takeover(folder, options);
  }

  std::error_code failed;
  const auto parent = std::filesystem::path(folder).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, failed);
  VARVE_TRY(io::make_posix_file_system()->make_directory(folder));
  VARVE_TRY_ASSIGN(const auto files, store::open_folder(folder, options.trust_owner));
  VARVE_TRY(refuse_unfinished_rebuild(*files, folder));
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
  const auto advanced = advance_to(*bucket, *files, folder, newest);
  if (!advanced) {
    if (!is_loss(advanced.error())) return advanced.error();
    const auto lost =
        Error(advanced.error())
            .with_more(
                "; `varve repair` in the folder that writes uploads lost objects again. Without "
                "that folder, and without an attached one, `varve attach --rebuild` rebuilds the "
                "catalog from the data");
    VARVE_TRY_ASSIGN(found, older_whole_head(*bucket, log, found, lost));
    if (writes) VARVE_TRY(require_newest(*bucket, found, options));
    newest = found.text;
    VARVE_TRY(authenticate_head(newest, keys.get()));
    VARVE_TRY_ASSIGN(head, decode_head(newest));
    VARVE_TRY_ASSIGN(superblock, read_superblock(head.superblock));
    VARVE_TRY(advance_to(*bucket, *files, folder, newest));
  }
  VARVE_TRY(write_config(*files, folder, config));
  if (keys) VARVE_TRY(compare_attached(folder, superblock.repository_id, keys, options));
  bucket::ProbeRecord probed;
  if (writes) {
    if (!found.fault) {
      VARVE_TRY(require_no_lost_head(*bucket, log, head, options, takeover));
      VARVE_TRY_ASSIGN(const auto state, find_state(*files, folder));
      VARVE_TRY_ASSIGN(const auto map, state->objects());
      VARVE_TRY(warn_of_newer_data(*bucket, log, head, map, takeover.left_objects));
    }
    ProbeRequest probe;
    probe.open_client = racer_opener(hooks, options.store.access, config);
    VARVE_TRY_ASSIGN(probed, probe_store(*bucket, clock, probe));
    takeover.folder = folder;
    takeover.superblock_text = head.superblock;
    takeover.superblock = superblock;
    takeover.keys = keys;
    VARVE_TRY(take_over_writing(*bucket, *files, takeover, options, hooks));
  }
  if (!writes && !found.fault) VARVE_TRY(warn_of_lost_head(*bucket, log, head, clock));
  const auto bytes = base::as_bytes(head.superblock);
  if (keys) VARVE_TRY(files->write_file_atomically(folder, "varve.keys", bytes));
  // Last: a folder without varve.repo is not a repository.
  VARVE_TRY(files->write_file_atomically(folder, "varve.repo", bytes));
  VARVE_TRY(files->remove(folder + "/" + kUnfinishedAttach));
  VARVE_TRY(files->sync_directory(folder));
  return note_first_use(*bucket, *files, folder, probed);
}

}  // namespace varve::remote
