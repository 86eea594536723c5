// SPDX-License-Identifier: Apache-2.0
#include "remote/bucket_side.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "base/coding.h"
#include "base/log.h"
#include "base/thread_pool.h"
#include "bucket/location.h"
#include "bucket/open_bucket.h"
#include "format/superblock.h"
#include "io/posix_file_system.h"
#include "remote/attachment.h"
#include "remote/distant_store.h"
#include "remote/lease.h"
#include "remote/object_lock_setting.h"
#include "remote/replica_state.h"
#include "remote/store_probe.h"
#include "remote/writer_store.h"
#include "store/repository_paths.h"
#include "store/superblock_text.h"
#include "varve/replication.h"

namespace varve::remote {

namespace {

using std::chrono::milliseconds;
constexpr milliseconds kPause{1000};
constexpr milliseconds kWaitFirst{500};
constexpr milliseconds kWaitMax{20000};
constexpr milliseconds kWaitLook{200};
// The interval of log messages about a lasting fault of the store.
constexpr std::chrono::minutes kTellsAgain{5};

bool is_passing(const Error& error) {
  return error.code() == ErrorCode::kUnavailable || error.code() == ErrorCode::kStale;
}

Result<std::unique_ptr<bucket::Bucket>> open_store(const BucketConfig& config,
                                                   const StoreAccess& access) {
  if (!access) {
    return Error(ErrorCode::kUnsupported, "this program has no access to object stores");
  }
  VARVE_TRY_ASSIGN(const auto location, bucket::parse_location(config.place));
  VARVE_TRY_ASSIGN(const auto options, access({config.place, config.endpoint, config.region}));
  bucket::S3Tuning tuning;
  using Clock = std::chrono::steady_clock;
  tuning.trouble = [place = config.place, told = std::string(),
                    at = Clock::time_point()](const std::string& trouble) mutable {
    const auto now = Clock::now();
    if (trouble.empty() || (trouble == told && now - at < kTellsAgain)) return;
    told = trouble;
    at = now;
    base::log(base::LogLevel::kWarning, place + ": " + trouble + "; trying again");
  };
  return bucket::make_bucket(location, options, tuning);
}

std::uint64_t bytes_sent(const bucket::Bucket& bucket) {
  std::uint64_t bytes = 0;
  for (const auto& counts : bucket.traffic()) bytes += counts.bytes_sent;
  return bytes;
}

}  // namespace

BucketOpener bucket_opener(const BucketHooks& hooks, const StoreAccess& access) {
  if (hooks.open) return hooks.open;
  return [access](const BucketConfig& config) { return open_store(config, access); };
}

Result<std::unique_ptr<BucketSide>> BucketSide::open(const std::string& path,
                                                     const OpenOptions& options,
                                                     const BucketHooks& hooks) {
  VARVE_TRY_ASSIGN(auto files, store::open_folder(path, options.trust_owner));
  VARVE_TRY_ASSIGN(auto config, read_config(*files, path));
  if (!config) return std::unique_ptr<BucketSide>();
  if (config->reads_only && !options.read_only) {
    return Error(ErrorCode::kReadOnly,
                 path + " is attached to " + config->place +
                     " for reading only; the folder that the repository was made in writes");
  }
  std::unique_ptr<BucketSide> side(new BucketSide(path, *std::move(config), options.store, hooks));
  side->files_ = std::move(files);
  side->read_only_ = options.read_only;
  auto lazy = std::make_unique<LazyBucket>([open = bucket_opener(hooks, options.store.access),
                                            config = side->config_] { return open(config); },
                                           side->config_.place);
  side->lazy_ = lazy.get();
  side->bucket_ = std::make_unique<bucket::LockingBucket>(std::move(lazy), side->clock());
  VARVE_TRY(side->open_data());
  return side;
}

Result<void> BucketSide::open_data() {
  const auto load = [this]() -> Result<ObjectMap> {
    if (replicator_) return replicator_->state().objects();
    const std::lock_guard lock(state_mutex_);
    if (state_) return state_->objects();
    VARVE_TRY_ASSIGN(const auto state, find_state(*files_, path_));
    return state ? state->objects() : ObjectMap();
  };
  data_ = std::make_unique<DistantData>(*bucket_, *files_, path_ + "/cache", cached_block_bytes(),
                                        load);
  if (config_.reads_only) return {};
  if (!read_only_) {
    VARVE_TRY_ASSIGN(notes_, LocalNotes::load(*files_, path_));
  }
  local_ = std::make_unique<LocalData>(*files_, *data_, notes_.get(), path_, load);
  local_->on_begin([this] { begun(); });
  return {};
}

BucketSide::~BucketSide() { stop(); }

const base::Clock& BucketSide::clock() const {
  return hooks_.clock != nullptr ? *hooks_.clock : system_clock_;
}

Result<void> BucketSide::refresh(const crypto::KeyRing* keys,
                                 const std::optional<NewerHead>& newer) {
  if (!config_.reads_only) return local_->load();
  if (newer) lazy_->assume_reached();
  const store::RepositoryPaths paths(path_);
  const auto lock = files_->lock(paths.lock());
  if (!lock) return {};  // Another process refreshes, or the folder is on a read-only disk.
  const auto work = [&]() -> Result<void> {
    VARVE_TRY_ASSIGN(const auto text, store::read_superblock_text(*files_, path_));
    VARVE_TRY_ASSIGN(const auto superblock, format::decode_superblock(text));
    std::string known;
    {
      VARVE_TRY_ASSIGN(const auto state, ReplicaState::open(*files_, path_, true));
      VARVE_TRY_ASSIGN(const auto present, state.head());
      known = present.value_or("");
    }
    CommitLog log(*bucket_, superblock.repository_id);
    // Another process may have brought the folder to a newer head since the look.
    const auto found = newer && newer->known == known ? Result<std::string>(newer->newest)
                                                      : newest_head(log, known);
    if (!found) return explain_lack(*bucket_, path_, found.error(), superblock.repository_id);
    const auto& newest = *found;
    VARVE_TRY(authenticate_head(newest, keys));
    VARVE_TRY_ASSIGN(const auto head, decode_head(newest));
    VARVE_TRY_ASSIGN(const bool advanced, advance_to(*bucket_, *files_, path_, newest));
    if (!advanced) return {};
    {
      VARVE_TRY_ASSIGN(auto state, ReplicaState::open(*files_, path_, false));
      static_cast<void>(keep_lease(*bucket_, superblock.repository_id, state));
    }
    return store::adopt_superblock(*files_, path_, head.superblock, keys != nullptr);
  };
  const auto done = work();
  return done || is_out_of_reach(done.error()) ? Result<void>() : done;
}

bool BucketSide::is_out_of_reach(const Error& error) {
  if (!is_passing(error)) return false;
  base::log(base::LogLevel::kWarning, error.message() + "; older versions are shown");
  return true;
}

std::unique_ptr<store::SegmentStore> BucketSide::segments(io::FileSystem& files,
                                                          const std::string& directory) {
  if (local_) return make_writer_store(files, *local_, path_, directory);
  return make_distant_store(files, *data_, path_, directory);
}

Result<void> BucketSide::start(const meta::Env& catalog, const std::string& repository_id,
                               std::shared_ptr<const crypto::KeyRing> keys) {
  if (config_.reads_only || read_only_) return {};
  ReplicatorParts parts;
  parts.root = path_;
  parts.files = files_.get();
  parts.catalog = &catalog;
  parts.bucket = bucket_.get();
  parts.clock = &clock();
  parts.repository_id = repository_id;
  parts.superblock = [this] { return store::read_superblock_text(*files_, path_); };
  parts.keys = std::move(keys);
  parts.extent_bytes_max = hooks_.extent_bytes_max;
  parts.delta_bytes_min = hooks_.delta_bytes_min;
  parts.volume_class = config_.volume_class;
  parts.uploads = hooks_.uploads;
  parts.heads = hooks_.heads;
  parts.notes = notes_.get();
  parts.kept = &kept_;
  parts.on_objects = [this](const ObjectMap& objects, const std::set<std::string>* changed) {
    local_->set_objects(objects, changed);
  };
  VARVE_TRY_ASSIGN(const auto lock, object_lock_of(catalog));
  bucket_->set_rule(lock);
  parts.lock_seconds = [this] { return bucket::seconds_of(bucket_->rule()); };
  VARVE_TRY_ASSIGN(replicator_, Replicator::open(std::move(parts)));
  if (!hooks_.in_background) return {};
  StagingBound::Parts bound;
  bound.place = config_.place;
  bound.bytes_max = staging_bytes_of(config_);
  bound.patience = hooks_.patience;
  bound.staged = [this] { return local_->staged_bytes(); };
  bound.disk_room = [this](std::uint64_t wanted) { return disk_room(wanted); };
  bound.notify = [this] { notify(); };
  bound.is_fenced = [this] { return replicator_->is_fenced(); };
  bound_ = std::make_unique<StagingBound>(std::move(bound));
  return {};
}

void BucketSide::hold(const meta::Env& catalog) {
  if (!config_.reads_only && !read_only_) kept_.begin(catalog);
}

void BucketSide::report(const ReplicateReport& done) const {
  if (hooks_.replicated) hooks_.replicated(done);
}

void BucketSide::notify() {
  if (!replicator_ || !hooks_.in_background) return;
  const std::lock_guard lock(mutex_);
  wanted_ = true;
  start_thread();
  wake_.notify_all();
}

void BucketSide::start_thread() {
  if (thread_.joinable() || stopping_) return;
  thread_ = std::jthread([this](const std::stop_token& stop) {
    base::name_this_thread("varve-bucket");
    replicate_in_background(stop);
  });
}

void BucketSide::replicate_in_background(const std::stop_token& stop) {
  auto wait = kWaitFirst;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (!wake_.wait(lock, stop, [this] { return wanted_ || early_; })) return;
      const bool is_early = std::exchange(early_, false);
      if (is_early && !wanted_) {
        lock.unlock();
        upload_now();
        continue;
      }
      // Arranging follows a seal and replaces data of the sealed version: one head has both.
      static_cast<void>(wake_.wait_for(lock, stop, kPause, [] { return false; }));
      if (stop.stop_requested()) return;
      wanted_ = false;
    }
    auto done = replicate_once();
    if (done) {
      report(*done);
      wait = kWaitFirst;
      note_traffic();
      evict();
      if (bound_) bound_->replicated();
      const auto removed = replicator_->remove_garbage();
      if (!removed) base::log(base::LogLevel::kInfo, removed.error().message());
      extend_locks();
      continue;
    }
    if (stop.stop_requested()) return;
    base::log(base::LogLevel::kWarning, replicator_->is_fenced()
                                            ? explain(done.error()).message()
                                            : "not replicated yet: " + done.error().message());
    if (!is_passing(done.error())) continue;  // The next seal, or the closing, tries again.
    std::unique_lock lock(mutex_);
    static_cast<void>(wake_.wait_for(lock, stop, wait, [] { return false; }));
    wait = std::min(wait * 2, kWaitMax);
    wanted_ = true;
  }
}

Result<void> BucketSide::finish() {
  if (!replicator_) return {};
  std::jthread watch;
  if (use_.waiting) {
    watch = std::jthread([this](const std::stop_token& stop) {
      base::name_this_thread("varve-waiting");
      std::mutex mutex;
      std::condition_variable_any ended;
      std::unique_lock lock(mutex);
      while (!ended.wait_for(lock, stop, kWaitLook, [&] { return stop.stop_requested(); })) {
        if (use_.waiting({config_.place, bytes_sent(*bucket_)})) continue;
        gives_up_ = true;
        bucket_->stop();
        return;
      }
    });
  }
  end_thread(false);
  return replicate_all();
}

Result<void> BucketSide::replicate_all() {
  auto wait = kWaitFirst;
  std::vector<std::string> damages;
  while (true) {
    const auto done = replicate_once();
    if (done) {
      report(*done);
      damages = done->damages;
      break;
    }
    if (gives_up_) {
      return Error(ErrorCode::kInterrupted, "interrupted; what is sealed in " + path_ +
                                                " is safe there, and not all of it is in " +
                                                config_.place + " yet: `varve wait " + path_ +
                                                "` goes on");
    }
    if (!is_passing(done.error()) || !hooks_.waits_for_store) {
      return explain(done.error());
    }
    base::log(base::LogLevel::kWarning,
              done.error().message() + "; not replicated yet, trying again");
    for (auto left = wait; left.count() > 0 && !gives_up_; left -= kWaitLook) {
      std::this_thread::sleep_for(std::min(left, kWaitLook));
    }
    wait = std::min(wait * 2, kWaitMax);
  }
  const auto removed = replicator_->remove_garbage();
  if (!removed) base::log(base::LogLevel::kInfo, removed.error().message());
  extend_locks();
  evict();
  if (damages.empty()) return {};
  return Error(ErrorCode::kCorrupt,
               damages.front() + "; it was uploaded as it is. Run `varve repair`");
}

Error BucketSide::explain(const Error& error) {
  auto explained = Error(error).with_more("; what is sealed in " + path_ + " is safe there");
  if (error.code() != ErrorCode::kLocked) return explained;
  const auto names = replicator_->unreplicated();
  if (names && !names->empty()) {
    std::string list;
    for (const auto& name : *names) list += (list.empty() ? "" : ", ") + name;
    explained = std::move(explained).with_more(
        ". Only this folder has: " + list + ". `varve copy` brings them into another repository");
  }
  if (!replicator_->is_fenced()) return explained;
  return std::move(explained).with_more(
      ". A mount of the folder can only be read from now on; `varve seal` seals what is open. " +
      how_to_write_again(config_.place));
}

Result<void> BucketSide::follow(const meta::Env& catalog,
                                std::shared_ptr<const crypto::KeyRing> keys,
                                std::chrono::milliseconds interval) {
  if (!config_.reads_only || follower_) return {};
  {
    const std::lock_guard lock(state_mutex_);
    VARVE_TRY_ASSIGN(auto state, ReplicaState::open(*files_, path_, false));
    state_ = std::make_unique<ReplicaState>(std::move(state));
  }
  FollowedFolder folder;
  folder.root = path_;
  folder.files = files_.get();
  folder.bucket = bucket_.get();
  folder.data = data_.get();
  folder.state = state_.get();
  folder.catalog = &catalog;
  folder.keys = std::move(keys);
  follower_ = std::make_unique<HeadFollower>(std::move(folder), interval);
  return {};
}

void BucketSide::stop() {
  if (look_thread_.joinable()) {
    bucket_->stop();
    look_thread_.join();
  }
  end_thread(true);
  kept_.close();
  if (follower_) {
    bucket_->stop();
    follower_.reset();
  }
  note_traffic();
}

bucket::Traffic BucketSide::traffic() const {
  return bucket_ ? bucket_->traffic() : bucket::Traffic{};
}

void BucketSide::note_traffic() {
  const std::lock_guard lock(state_mutex_);
  const auto now = traffic();
  const auto more = bucket::difference(now, noted_);
  if (more == bucket::Traffic{}) return;
  const auto note = [&]() -> Result<void> {
    if (replicator_) return replicator_->state().add_traffic(more);
    if (state_) return state_->add_traffic(more);
    VARVE_TRY_ASSIGN(auto state, ReplicaState::open(*files_, path_, false));
    return state.add_traffic(more);
  };
  const auto noted = note();
  if (noted) noted_ = now;
  if (!noted) base::log(base::LogLevel::kDebug, noted.error().message());
}

void BucketSide::end_thread(bool at_once) {
  std::jthread ended;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    ended = std::move(thread_);
  }
  if (bound_) bound_->stop();
  if (!ended.joinable()) return;
  ended.request_stop();
  if (at_once && bucket_) bucket_->stop();
  ended.join();
}

}  // namespace varve::remote
