// SPDX-License-Identifier: Apache-2.0
#include "remote/rebuild.h"

#include <fmt/core.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/coding.h"
#include "bucket/locking_bucket.h"
#include "format/container.h"
#include "format/data_codecs.h"
#include "io/client_memory.h"
#include "io/posix_file_system.h"
#include "maintain/repairer.h"
#include "remote/bucket_config.h"
#include "remote/catalog_reads.h"
#include "remote/changes.h"
#include "remote/commit_log.h"
#include "remote/distant_data.h"
#include "remote/distant_store.h"
#include "remote/head.h"
#include "remote/outer_objects.h"
#include "remote/readable_head.h"
#include "remote/store_probe.h"
#include "remote/store_survey.h"
#include "remote/takeover.h"
#include "remote/unfinished_rebuild.h"
#include "store/repository_paths.h"
#include "store/sealed_places.h"
#include "store/superblock_text.h"

namespace varve::remote {

namespace {

constexpr std::string_view kRebuiltKey = "rebuilt";  // In the state.

/// A repository whose heads or catalog objects are lost.
struct LostCatalog {
  std::unique_ptr<bucket::LockingBucket> bucket{};
  std::string repository_id{};
  std::string superblock_text{};
  bool has_superblock = false;  ///< The store has `varve.repo`.
};

Result<void> require_loss(bucket::Bucket& bucket, const ReadableHead& newest) {
  if (newest.fault) return {};
  VARVE_TRY_ASSIGN(const auto head, decode_head(newest.text));
  const auto read = read_all_or_copies(bucket, head.catalog);
  if (!read) return is_loss(read.error()) ? Result<void>() : Result<void>(read.error());
  return Error(ErrorCode::kInvalid,
               fmt::format("{}: the newest state is whole; `varve attach` without --rebuild reads "
                           "it",
                           bucket.describe()));
}

// The newest head has the present key slots; `varve.repo` has the key slots of the creation.
Result<LostCatalog> open_lost(const RebuildRequest& request, const OpenOptions& options,
                              const base::Clock& clock, const BucketHooks& hooks) {
  LostCatalog lost;
  VARVE_TRY_ASSIGN(auto opened,
                   bucket_opener(hooks, options.store.access)(config_of(request.place, true)));
  lost.bucket = std::make_unique<bucket::LockingBucket>(std::move(opened), clock);
  VARVE_TRY_ASSIGN(const auto listed, lost.bucket->list({}, {}, 1));
  VARVE_TRY_ASSIGN(lost.repository_id,
                   repository_in(*lost.bucket, listed, request.read_superblock));
  CommitLog log(*lost.bucket, lost.repository_id);
  const auto newest = readable_head(log);
  if (newest) {
    VARVE_TRY(require_loss(*lost.bucket, *newest));
    VARVE_TRY_ASSIGN(const auto head, decode_head(newest->text));
    lost.superblock_text = head.superblock;
  } else if (newest.error().code() != ErrorCode::kNoRepository && !is_loss(newest.error())) {
    return newest.error();
  }
  const auto present = superblock_in(*lost.bucket);
  lost.has_superblock = present && present->has_value();
  if (lost.superblock_text.empty() && lost.has_superblock) lost.superblock_text = **present;
  if (!lost.superblock_text.empty()) return lost;
  return Error(ErrorCode::kCorrupt,
               lost.bucket->describe() + " has lost all heads and " + kSuperblockName +
                   ", which has the parameters and key slots: put a file varve.repo of any folder "
                   "of this repository there");
}

StoreSurvey count(const SurveyedObjects& found) {
  // Each list of a thousand objects is a request; the lists and the heads are read twice.
  constexpr std::uint64_t kObjectsPerList = 1000;
  constexpr std::uint64_t kOtherRequests = 40;
  StoreSurvey survey;
  survey.requests =
      kOtherRequests + 2 * (found.data.size() + found.others.size()) / kObjectsPerList;
  for (const auto& object : found.data) {
    ++survey.objects;
    survey.bytes += object.bytes;
    // One request places the object, and each container needs a request.
    survey.requests += 2 + object.bytes / format::kContainerBytesMax;
  }
  for (const auto& object : found.others) {
    ++survey.objects;
    survey.bytes += object.bytes;
    if (copied_name(object.name)) continue;
    survey.requests += 2;
    survey.bytes_read += object.bytes;
  }
  return survey;
}

/// A folder in which a rebuild makes a repository.
class Rebuilder {
 public:
  Rebuilder(const RebuildRequest& request, const OpenOptions& options, const BucketHooks& hooks,
            LostCatalog& lost, const base::Clock& clock)
      : request_(request),
        options_(options),
        hooks_(hooks),
        lost_(lost),
        bucket_(*lost.bucket),
        clock_(clock),
        config_(config_of(request.place, true)),
        paths_(request.folder) {}

  Result<StoreRebuild> run() {
    VARVE_TRY(unlock());
    VARVE_TRY_ASSIGN(const auto objects, survey_objects(bucket_, lost_.repository_id));
    VARVE_TRY(make_folder());
    PlacedObjects placed;
    VARVE_TRY(place_data(bucket_, objects.data, placed));
    const PlacingFolder folder{request_.folder, files_.get(), sealed_.get()};
    const format::DataCodecs codecs(superblock_.parameters, keys_);
    VARVE_TRY(place_small_files(bucket_, folder, codecs, objects, placed));
    VARVE_TRY_ASSIGN(auto rebuilt, build_catalog(placed.map));
    VARVE_TRY_ASSIGN(const auto lock, files_->lock(paths_.lock()));
    VARVE_TRY(write_state(placed.map));
    if (request_.role == AttachRole::kWrites) VARVE_TRY(take_over(objects.heads_passed));
    VARVE_TRY(files_->remove(request_.folder + "/" + kUnfinishedRebuild));
    VARVE_TRY(files_->sync_directory(request_.folder));
    if (placed.deleted != 0) {
      rebuilt.notes.push_back(fmt::format(
          "{} manifests of versions that were deleted lately are left out", placed.deleted));
    }
    for (auto& problem : placed.problems) rebuilt.problems.push_back(std::move(problem));
    return rebuilt;
  }

 private:
  Result<void> unlock() {
    VARVE_TRY_ASSIGN(superblock_, request_.read_superblock(lost_.superblock_text));
    if (superblock_.repository_id != lost_.repository_id) {
      return Error(ErrorCode::kCorrupt, bucket_.describe() + " mixes two repositories");
    }
    VARVE_TRY_ASSIGN(keys_, format::unlock_superblock(superblock_, lost_.superblock_text,
                                                      options_.key, options_.encrypted_only));
    return {};
  }

  // The folder is attached from the first moment, so no process writes to the folder.
  Result<void> make_folder() {
    const auto& folder = request_.folder;
    std::error_code failed;
    const auto parent = std::filesystem::path(folder).parent_path();
    if (!parent.empty()) std::filesystem::create_directories(parent, failed);
    VARVE_TRY(io::make_posix_file_system()->make_directory(folder));
    VARVE_TRY_ASSIGN(files_, store::open_folder(folder, options_.trust_owner));
    VARVE_TRY(clear_unfinished_rebuild(*files_, folder));
    VARVE_TRY_ASSIGN(const auto names, files_->list(folder));
    for (const auto& name : names) {
      // A process may have been killed before it began.
      const bool is_mark =
          name == kUnfinishedRebuild || name == std::string(kUnfinishedRebuild) + ".tmp";
      if (name == "lost+found" || is_mark) continue;
      return Error(ErrorCode::kNotEmpty, folder + " is not empty; choose an empty or a new folder");
    }
    VARVE_TRY(files_->write_file_atomically(folder, kUnfinishedRebuild, {}));
    VARVE_TRY_ASSIGN(rebuilding_, files_->lock(folder + "/" + kUnfinishedRebuild));
    VARVE_TRY(write_config(*files_, folder, config_));
    for (const auto& one : {paths_.all_series(), paths_.all_staging()}) {
      VARVE_TRY(files_->make_durable_directory(one));
    }
    const auto bytes = base::as_bytes(lost_.superblock_text);
    if (keys_) VARVE_TRY(files_->write_file_atomically(folder, "varve.keys", bytes));
    VARVE_TRY(files_->write_file_atomically(folder, "varve.repo", bytes));
    VARVE_TRY_ASSIGN(auto opened, store::open_folder(folder, options_.trust_owner));
    sealed_ = store::seal_files(std::move(opened), keys_, folder);
    return {};
  }

  Result<StoreRebuild> build_catalog(const ObjectMap& map) {
    const auto& folder = request_.folder;
    for (const auto& [path, extents] : map) {
      for (auto slash = path.find('/'); slash != std::string::npos;
           slash = path.find('/', slash + 1)) {
        VARVE_TRY(files_->make_directory(folder + "/" + path.substr(0, slash)));
      }
    }
    DistantData data(bucket_, *files_, folder + "/cache", cached_block_bytes_of(config_),
                     [&map] { return Result<ObjectMap>(map); });
    RepairOptions how;
    how.read_data = false;
    how.rebuild_catalog = true;
    // Nothing distinguishes containers behind damage from a part of a stored file.
    how.take_found = false;
    how.trust_owner = options_.trust_owner;
    how.key = options_.key;
    how.encrypted_only = options_.encrypted_only;
    how.accept_older = options_.accept_older;
    maintain::RepairHelpers helpers;
    helpers.open_store = [&](io::FileSystem& from, const std::string& directory) {
      return make_distant_store(from, data, folder, directory);
    };
    helpers.compare_sequence = [&](const std::string& id, const auto& present) {
      return io::refuse_older(io::ClientMemory(options_.memory_folder, id), folder, present);
    };
    VARVE_TRY_ASSIGN(auto opened, store::open_folder(folder, options_.trust_owner));
    VARVE_TRY_ASSIGN(const auto plan,
                     maintain::Repairer::plan(folder, how, std::move(opened), false, {}, helpers));
    VARVE_TRY_ASSIGN(auto report, plan->execute({}));
    StoreRebuild rebuilt;
    rebuilt.versions = report.versions;
    rebuilt.problems = std::move(report.problems);
    rebuilt.notes = std::move(report.notes);
    return rebuilt;
  }

  Result<void> write_state(const ObjectMap& map) {
    ChangeWriter changes;
    for (const auto& [path, extents] : map) compare_extents(path, {}, extents, changes);
    VARVE_TRY_ASSIGN(auto state, ReplicaState::open(*files_, request_.folder, false));
    VARVE_TRY(state.add_objects(changes.finish()));
    if (request_.role == AttachRole::kWrites) return {};
    return state.set_number(kRebuiltKey, 1);
  }

  // O71: the head is above all listed and lost heads, and precedes the role.
  Result<void> take_over(std::uint64_t heads_passed) {
    const auto config = config_of(request_.place, false);
    if (!lost_.has_superblock) VARVE_TRY(put_superblock_back(bucket_, lost_.superblock_text));
    ProbeRequest probe;
    probe.open_client = racer_opener(hooks_, options_.store.access, config);
    VARVE_TRY_ASSIGN(const auto probed, probe_store(bucket_, clock_, probe));
    Takeover takeover;
    takeover.folder = request_.folder;
    takeover.superblock_text = lost_.superblock_text;
    takeover.superblock = superblock_;
    takeover.keys = keys_;
    // A writer or reader that knows a lost head finds the later head of the rebuilt state, and
    // neither goes on nor puts the lost head back.
    takeover.heads_passed = heads_passed + kLostHeadsMax;
    VARVE_TRY(take_over_writing(bucket_, *files_, takeover, options_, hooks_));
    VARVE_TRY(write_config(*files_, request_.folder, config));
    return note_first_use(bucket_, *files_, request_.folder, probed);
  }

  const RebuildRequest& request_;
  const OpenOptions& options_;
  const BucketHooks& hooks_;
  LostCatalog& lost_;
  bucket::LockingBucket& bucket_;
  const base::Clock& clock_;
  const BucketConfig config_;
  const store::RepositoryPaths paths_;
  format::Superblock superblock_;
  std::shared_ptr<const crypto::KeyRing> keys_;
  std::unique_ptr<io::FileSystem> files_;
  std::unique_ptr<io::FileSystem> sealed_;
  std::unique_ptr<io::FileLock> rebuilding_;  // No second rebuild begins in the folder.
};

}  // namespace

Result<StoreSurvey> survey(const RebuildRequest& request, const OpenOptions& options,
                           const BucketHooks& hooks) {
  const base::SystemClock system_clock;
  const base::Clock& clock = hooks.clock != nullptr ? *hooks.clock : system_clock;
  VARVE_TRY_ASSIGN(const auto lost, open_lost(request, options, clock, hooks));
  VARVE_TRY_ASSIGN(const auto found, survey_objects(*lost.bucket, lost.repository_id));
  return count(found);
}

Result<StoreRebuild> rebuild(const RebuildRequest& request, const OpenOptions& options,
                             const BucketHooks& hooks) {
  if (request.role == AttachRole::kWrites && !options.accept_older) {
    return Error(ErrorCode::kCorrupt,
                 request.place.place +
                     ": a rebuilt catalog may lack versions. `varve repair` in a folder that "
                     "writes or is attached puts lost objects back. Without such a folder, `varve "
                     "--accept-older attach --write --rebuild` goes on from what is left");
  }
  const base::SystemClock system_clock;
  const base::Clock& clock = hooks.clock != nullptr ? *hooks.clock : system_clock;
  VARVE_TRY_ASSIGN(auto lost, open_lost(request, options, clock, hooks));
  Rebuilder rebuilder(request, options, hooks, lost, clock);
  return rebuilder.run();
}

Result<bool> is_rebuilt_state(const ReplicaState& state) {
  VARVE_TRY_ASSIGN(const auto rebuilt, state.number(kRebuiltKey));
  return rebuilt != 0;
}

}  // namespace varve::remote
