// SPDX-License-Identifier: Apache-2.0
#include "remote/bucket_replication.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/thread_pool.h"
#include "remote/failure_note.h"
#include "remote/object_lock_setting.h"
#include "remote/object_locks.h"
#include "remote/store_errors.h"
#include "remote/store_probe.h"
#include "store/superblock_text.h"
#include "varve/replication.h"

namespace varve::remote {

namespace {

using std::chrono::milliseconds;
constexpr milliseconds kWaitLook{200};
constexpr WriterQuestion::Ages kAgesOfVersions{milliseconds(0), milliseconds(0)};
constexpr WriterQuestion::Ages kAgesOfFiles{milliseconds(5000), milliseconds(30000)};

std::uint64_t bytes_sent(const bucket::Bucket& bucket) {
  std::uint64_t bytes = 0;
  for (const auto& counts : bucket.traffic()) bytes += counts.bytes_sent;
  return bytes;
}

ReplicatorParts parts_for_replicator(BucketFolder& folder, const WriterParts& writer,
                                     const WrittenRepository& repository) {
  ReplicatorParts parts;
  parts.root = folder.path();
  parts.files = &folder.files();
  parts.catalog = repository.catalog;
  parts.bucket = &folder.bucket();
  parts.clock = &folder.clock();
  parts.repository_id = repository.id;
  parts.superblock = [&folder] {
    return store::read_superblock_text(folder.files(), folder.path());
  };
  parts.keys = repository.keys;
  parts.extent_bytes_max = folder.hooks().extent_bytes_max;
  parts.delta_bytes_min = folder.hooks().delta_bytes_min;
  parts.volume_class = folder.config().volume_class;
  parts.uploads = folder.hooks().uploads;
  parts.heads = folder.hooks().heads;
  parts.notes = writer.notes;
  parts.kept = writer.kept;
  parts.on_objects = [local = writer.local](const ObjectMap& objects,
                                            const std::set<std::string>* changed) {
    local->set_objects(objects, changed);
  };
  parts.lock_seconds = [&folder] { return bucket::seconds_of(folder.bucket().rule()); };
  return parts;
}

}  // namespace

Result<std::unique_ptr<BucketReplication>> BucketReplication::open(
    BucketFolder& folder, const WriterParts& parts, const WrittenRepository& repository) {
  VARVE_TRY_ASSIGN(const auto lock, object_lock_of(*repository.catalog));
  folder.bucket().set_rule(lock);
  VARVE_TRY_ASSIGN(auto replicator,
                   Replicator::open(parts_for_replicator(folder, parts, repository)));
  std::unique_ptr<BucketReplication> opened(
      new BucketReplication(folder, parts, repository, std::move(replicator)));
  if (folder.hooks().in_background) opened->bound_writers(*repository.space);
  return opened;
}

BucketReplication::BucketReplication(BucketFolder& folder, const WriterParts& parts,
                                     const WrittenRepository& repository,
                                     std::unique_ptr<Replicator> replicator)
    : folder_(folder),
      local_(*parts.local),
      labelled_(repository.labelled),
      remember_(repository.remember),
      replicator_(std::move(replicator)),
      evictor_(folder_, local_, *replicator_, *repository.space),
      thread_({.replicate = [this] { return replicate_in_background(); },
               .failed =
                   [this](const Error& error) {
                     base::log(base::LogLevel::kWarning,
                               is_fenced() ? explain(error).message()
                                           : "not replicated yet: " + error.message());
                     if (is_passing(error)) return;
                     note_failure(replicator_->state(), error, folder_.clock().now());
                   },
               .upload_early = [this] { upload_now(); }}),
      question_([this] { return ask_writer(); }) {
  folder_.state().share(replicator_->state());
}

BucketReplication::~BucketReplication() {
  stop();
  folder_.state().release();
}

void BucketReplication::bound_writers(store::SpaceGuard& space) {
  StagingBound::Parts bound;
  bound.place = folder_.config().place;
  bound.bytes_max = staging_bytes_of(folder_.config());
  bound.patience = folder_.hooks().patience;
  bound.staged = [this] { return local_.staged_bytes(); };
  bound.disk_room = [this](std::uint64_t wanted) { return evictor_.disk_room(wanted); };
  bound.notify = [this] { changed(); };
  bound.is_fenced = [this] { return is_fenced(); };
  bound_ = std::make_unique<StagingBound>(std::move(bound));
  space.ask_before_writes([this](std::uint64_t bytes) { return bound_->before_write(bytes); });
  space.make_room_by([this](std::uint64_t bytes) { return evictor_.evict(bytes); });
}

void BucketReplication::changed() {
  if (folder_.hooks().in_background) thread_.request_head();
}

void BucketReplication::before_seal() {
  if (bound_) bound_->before_seal();
}

void BucketReplication::upload_early() {
  if (!any_begun_.exchange(false)) return;
  if (folder_.hooks().in_background) {
    thread_.request_early();
  } else {
    upload_now();
  }
}

// The first file requests the newest head, so that the answer is ready before the seal.
void BucketReplication::begun() {
  if (folder_.hooks().early_bytes == 0) return;
  any_begun_ = true;
  if (ever_begun_.exchange(true) || !folder_.hooks().in_background) return;
  thread_.request_early();
}

void BucketReplication::upload_now() {
  const auto done = replicator_->upload_early();
  if (done) return;
  base::log(base::LogLevel::kDebug, "not uploaded yet: " + done.error().message());
  any_begun_ = true;  // The next checkpoint tries again.
}

bool BucketReplication::learn_fence(FenceAge age) {
  if (!folder_.hooks().in_background) return is_fenced();
  if (!is_fenced()) question_.ask(age == FenceAge::kOfVersions ? kAgesOfVersions : kAgesOfFiles);
  return is_fenced();
}

bool BucketReplication::ask_writer() {
  const auto found = replicator_->find_other_writer();
  if (!found) base::log(base::LogLevel::kDebug, found.error().message());
  if (found && *found) thread_.request_head();  // Logs the other writer.
  return found.has_value();
}

Result<void> BucketReplication::allow_lock(const ObjectLock& lock) {
  return require_locks(folder_.bucket(), lock, folder_.clock());
}

// Reads the sequence number first: the head then has all counted changes.
Result<ReplicateReport> BucketReplication::replicate_once() {
  if (evictor_.take_wants_newest()) VARVE_TRY(replicator_->confirm_newest());
  const auto labelled = labelled_ ? labelled_() : 0;
  auto done = replicator_->replicate();
  // The catalog and the state need room.
  if (!done && done.error().code() == ErrorCode::kNoSpace && evictor_.evict()) {
    done = replicator_->replicate();
  }
  if (done && labelled != 0) remember_(labelled);
  if (done) VARVE_TRY(forget_failure(replicator_->state()));
  if (done && folder_.hooks().replicated) folder_.hooks().replicated(*done);
  return done;
}

Result<void> BucketReplication::replicate_in_background() {
  const auto done = replicate_once();
  if (!done) return done.error();
  folder_.note_traffic();
  evictor_.evict();
  if (bound_) bound_->replicated();
  remove_garbage();
  extend_locks();
  return {};
}

Result<void> BucketReplication::replicate_all() {
  auto wait = kAttemptPauseFirst;
  std::vector<std::string> damages;
  while (true) {
    const auto done = replicate_once();
    if (done) {
      damages = done->damages;
      break;
    }
    if (gives_up_) {
      return Error(ErrorCode::kInterrupted, "interrupted; what is sealed in " + folder_.path() +
                                                " is safe there, and not all of it is in " +
                                                folder_.config().place + " yet: `varve wait " +
                                                folder_.path() + "` goes on");
    }
    if (!is_passing(done.error()) || !folder_.hooks().waits_for_store) {
      return explain(done.error());
    }
    base::log(base::LogLevel::kWarning,
              done.error().message() + "; not replicated yet, trying again");
    for (auto left = wait; left.count() > 0 && !gives_up_; left -= kWaitLook) {
      std::this_thread::sleep_for(std::min(left, kWaitLook));
    }
    wait = std::min(wait * 2, kAttemptPauseMax);
  }
  remove_garbage();
  extend_locks();
  evictor_.evict();
  if (damages.empty()) return {};
  return Error(ErrorCode::kCorrupt,
               damages.front() + "; it was uploaded as it is. Run `varve repair`");
}

Result<void> BucketReplication::finish() {
  std::jthread watch;
  if (folder_.use().waiting) {
    watch = std::jthread([this](const std::stop_token& stop) {
      base::name_this_thread("varve-waiting");
      std::mutex mutex;
      std::condition_variable_any ended;
      std::unique_lock lock(mutex);
      while (!ended.wait_for(lock, stop, kWaitLook, [&] { return stop.stop_requested(); })) {
        if (folder_.use().waiting({folder_.config().place, bytes_sent(folder_.bucket())})) continue;
        gives_up_ = true;
        folder_.bucket().stop();
        return;
      }
    });
  }
  end_thread(false);
  return replicate_all();
}

void BucketReplication::end_thread(bool at_once) {
  if (bound_) bound_->stop();
  thread_.stop(at_once ? [this] { folder_.bucket().stop(); } : std::function<void()>());
  question_.stop();
}

void BucketReplication::remove_garbage() {
  const auto removed = replicator_->remove_garbage();
  if (!removed) base::log(base::LogLevel::kInfo, removed.error().message());
}

void BucketReplication::extend_locks() {
  if (is_fenced()) return;
  LockPlace place;
  place.bucket = &folder_.bucket();
  place.state = &replicator_->state();
  place.limits = folder_.hooks().uploads;
  place.at_once = folder_.hooks().locks_at_once;
  const auto done = remote::extend_locks(place);
  if (!done) {
    base::log(base::LogLevel::kInfo, "locks are extended later: " + done.error().message());
    return;
  }
  if (folder_.hooks().locks_extended) folder_.hooks().locks_extended(*done);
  if (done->refused == 0) return;
  base::log(base::LogLevel::kWarning,
            fmt::format("the store did not extend the locks of {} objects: {}. Objects whose locks "
                        "end are not protected; `varve check` lists them",
                        done->refused, done->refusal));
}

Error BucketReplication::explain(const Error& error) {
  auto explained =
      Error(error).with_more("; what is sealed in " + folder_.path() + " is safe there");
  if (error.code() != ErrorCode::kLocked) return explained;
  const auto names = replicator_->unreplicated();
  if (names && !names->empty()) {
    std::string list;
    for (const auto& name : *names) list += (list.empty() ? "" : ", ") + name;
    explained = std::move(explained).with_more(
        ". Only this folder has: " + list + ". `varve copy` brings them into another repository");
  }
  if (!is_fenced()) return explained;
  return std::move(explained).with_more(
      ". A mount of the folder can only be read from now on; `varve seal` seals what is open. " +
      how_to_write_again(folder_.config().place));
}

}  // namespace varve::remote
