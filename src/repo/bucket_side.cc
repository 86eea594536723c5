// SPDX-License-Identifier: Apache-2.0
#include "repo/bucket_side.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/coding.h"
#include "base/log.h"
#include "base/thread_pool.h"
#include "bucket/location.h"
#include "bucket/open_bucket.h"
#include "format/superblock.h"
#include "io/posix_file_system.h"
#include "replica/attachment.h"
#include "replica/distant_files.h"
#include "replica/lazy_bucket.h"
#include "replica/replica_state.h"
#include "repo/superblock_file.h"
#include "store/repository_paths.h"
#include "varve/replication.h"

namespace varve::repo {

namespace {

using std::chrono::milliseconds;
constexpr milliseconds kWaitFirst{500};
constexpr milliseconds kWaitMax{20000};
constexpr milliseconds kWaitLook{200};
constexpr std::uint64_t kCacheBytesMax = std::uint64_t{4} << 30;

bool is_passing(const Error& error) {
  return error.code() == ErrorCode::kUnavailable || error.code() == ErrorCode::kStale;
}

Result<std::unique_ptr<bucket::Bucket>> open_store(const replica::BucketConfig& config,
                                                   const StoreAccess& access) {
  if (!access) {
    return Error(ErrorCode::kUnsupported, "this program has no access to object stores");
  }
  VARVE_TRY_ASSIGN(const auto location, bucket::parse_location(config.place));
  VARVE_TRY_ASSIGN(const auto options, access({config.place, config.endpoint, config.region}));
  bucket::S3Tuning tuning;
  tuning.trouble = [place = config.place](const std::string& trouble) {
    if (trouble.empty()) return;
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

replica::BucketOpener bucket_opener(const BucketHooks& hooks, const StoreAccess& access) {
  if (hooks.open) return hooks.open;
  return [access](const replica::BucketConfig& config) { return open_store(config, access); };
}

Result<std::unique_ptr<BucketSide>> BucketSide::open(const std::string& path,
                                                     const OpenOptions& options,
                                                     const BucketHooks& hooks) {
  VARVE_TRY_ASSIGN(auto files, open_folder(path, options.trust_owner));
  VARVE_TRY_ASSIGN(auto config, replica::read_config(*files, path));
  if (!config) return std::unique_ptr<BucketSide>();
  if (config->reads_only && !options.read_only) {
    return Error(ErrorCode::kReadOnly,
                 path + " is attached to " + config->place +
                     " for reading only; the folder that the repository was made in writes");
  }
  std::unique_ptr<BucketSide> side(new BucketSide(path, *std::move(config), options.store, hooks));
  side->files_ = std::move(files);
  // A reader of the writer's folder needs no request.
  if (!side->config_.reads_only && options.read_only) return side;
  side->bucket_ =
      std::make_unique<replica::LazyBucket>([open = bucket_opener(hooks, options.store.access),
                                             config = side->config_] { return open(config); },
                                            side->config_.place);
  if (!side->config_.reads_only) return side;
  const auto load = [self = side.get()]() -> Result<replica::ObjectMap> {
    const std::lock_guard lock(self->state_mutex_);
    if (self->state_) return self->state_->objects();
    VARVE_TRY_ASSIGN(const auto state,
                     replica::ReplicaState::open(*self->files_, self->path_, true));
    return state.objects();
  };
  side->data_ = std::make_unique<replica::DistantData>(*side->bucket_, *side->files_,
                                                       path + "/cache", kCacheBytesMax, load);
  return side;
}

BucketSide::~BucketSide() { stop(); }

const base::Clock& BucketSide::clock() const {
  return hooks_.clock != nullptr ? *hooks_.clock : system_clock_;
}

Result<void> BucketSide::refresh(const crypto::KeyRing* keys) {
  if (!config_.reads_only) return {};
  const store::RepositoryPaths paths(path_);
  const auto lock = files_->lock(paths.lock());
  if (!lock) return {};  // Another process refreshes, or the folder is on a read-only disk.
  const auto work = [&]() -> Result<void> {
    VARVE_TRY_ASSIGN(const auto text, read_superblock_text(*files_, path_));
    VARVE_TRY_ASSIGN(const auto superblock, format::decode_superblock(text));
    std::uint64_t known = 1;
    {
      VARVE_TRY_ASSIGN(const auto state, replica::ReplicaState::open(*files_, path_, true));
      VARVE_TRY_ASSIGN(const auto present, state.head());
      if (present) {
        VARVE_TRY_ASSIGN(const auto present_head, replica::decode_head(*present));
        known = present_head.number;
      }
    }
    VARVE_TRY_ASSIGN(const auto newest,
                     replica::newest_head(*bucket_, superblock.repository_id, known));
    VARVE_TRY(replica::authenticate_head(newest, keys));
    VARVE_TRY_ASSIGN(const auto head, replica::decode_head(newest));
    VARVE_TRY_ASSIGN(const bool advanced, replica::advance_to(*bucket_, *files_, path_, newest));
    if (!advanced) return {};
    return adopt_superblock(*files_, path_, head.superblock, keys != nullptr);
  };
  const auto done = work();
  if (done) return {};
  if (!is_passing(done.error())) return done;
  base::log(base::LogLevel::kWarning, done.error().message() + "; older versions are shown");
  return {};
}

std::unique_ptr<io::FileSystem> BucketSide::wrap(std::unique_ptr<io::FileSystem> files) {
  if (!data_) return files;
  return replica::make_distant_files(std::move(files), *data_, path_);
}

std::unique_ptr<store::SegmentStore> BucketSide::segments(io::FileSystem& files,
                                                          const std::string& directory) {
  if (!data_) return nullptr;
  return replica::make_distant_store(files, *data_, path_, directory);
}

Result<void> BucketSide::start(const meta::Env& catalog, const std::string& repository_id,
                               std::shared_ptr<const crypto::KeyRing> keys) {
  if (config_.reads_only || !bucket_) return {};
  replica::ReplicatorParts parts;
  parts.root = path_;
  parts.files = files_.get();
  parts.catalog = &catalog;
  parts.bucket = bucket_.get();
  parts.clock = &clock();
  parts.repository_id = repository_id;
  parts.superblock = [this] { return read_superblock_text(*files_, path_); };
  parts.keys = std::move(keys);
  parts.extent_bytes_max = hooks_.extent_bytes_max;
  parts.delta_bytes_min = hooks_.delta_bytes_min;
  parts.volume_class = config_.volume_class;
  parts.uploads = hooks_.uploads;
  parts.heads = hooks_.heads;
  VARVE_TRY_ASSIGN(replicator_, replica::Replicator::open(std::move(parts)));
  return {};
}

void BucketSide::notify() {
  if (!replicator_ || !hooks_.in_background) return;
  const std::lock_guard lock(mutex_);
  wanted_ = true;
  if (!thread_.joinable()) {
    thread_ = std::jthread([this](const std::stop_token& stop) {
      base::name_this_thread("varve-bucket");
      replicate_in_background(stop);
    });
  }
  wake_.notify_all();
}

void BucketSide::replicate_in_background(const std::stop_token& stop) {
  auto wait = kWaitFirst;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (!wake_.wait(lock, stop, [this] { return wanted_; })) return;
      wanted_ = false;
    }
    auto done = replicator_->replicate();
    if (done) {
      wait = kWaitFirst;
      note_traffic();
      const auto removed = replicator_->remove_garbage();
      if (!removed) base::log(base::LogLevel::kInfo, removed.error().message());
      continue;
    }
    if (stop.stop_requested()) return;
    base::log(base::LogLevel::kWarning, "not replicated yet: " + done.error().message());
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
  while (true) {
    const auto done = replicator_->replicate();
    if (done) break;
    if (gives_up_) {
      return Error(ErrorCode::kInterrupted, "interrupted; what is sealed in " + path_ +
                                                " is safe there, and not all of it is in " +
                                                config_.place + " yet: `varve wait " + path_ +
                                                "` goes on");
    }
    if (!is_passing(done.error()) || !hooks_.waits_for_store) {
      return Error(done.error()).with_more("; what is sealed in " + path_ + " is safe there");
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
  return {};
}

Result<void> BucketSide::follow(const meta::Env& catalog,
                                std::shared_ptr<const crypto::KeyRing> keys,
                                std::chrono::milliseconds interval) {
  if (!data_ || follower_) return {};
  {
    const std::lock_guard lock(state_mutex_);
    VARVE_TRY_ASSIGN(auto state, replica::ReplicaState::open(*files_, path_, false));
    state_ = std::make_unique<replica::ReplicaState>(std::move(state));
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
  end_thread(true);
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
    VARVE_TRY_ASSIGN(auto state, replica::ReplicaState::open(*files_, path_, false));
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
    ended = std::move(thread_);
  }
  if (!ended.joinable()) return;
  ended.request_stop();
  if (at_once && bucket_) bucket_->stop();
  ended.join();
}

}  // namespace varve::repo
