// SPDX-License-Identifier: Apache-2.0
// The object store of an open repository.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/clock.h"
#include "bucket/bucket.h"
#include "bucket/locking_bucket.h"
#include "crypto/key_ring.h"
#include "io/file_system.h"
#include "meta/lmdb.h"
#include "remote/bucket_config.h"
#include "remote/distant_data.h"
#include "remote/garbage.h"
#include "remote/head_follower.h"
#include "remote/kept_snapshot.h"
#include "remote/lazy_bucket.h"
#include "remote/lease.h"
#include "remote/local_data.h"
#include "remote/local_notes.h"
#include "remote/object_locks.h"
#include "remote/replica_state.h"
#include "remote/replicator.h"
#include "remote/staging_bound.h"
#include "remote/uploads.h"
#include "store/segment_store.h"
#include "store/space_guard.h"
#include "varve/object_store.h"
#include "varve/options.h"
#include "varve/result.h"

namespace varve::remote {

/// How repositories in object stores are opened. Tests replace the defaults.
struct BucketHooks {
  BucketOpener open{};                 ///< Empty for S3-compatible stores.
  const base::Clock* clock = nullptr;  ///< Null for the system's clock.
  /// True to replicate in a thread after each seal and deletion, false at closing only.
  bool in_background = true;
  /// How long a writer waits for a store without progress.
  std::chrono::milliseconds patience = std::chrono::minutes(10);
  /// False to return kUnavailable from close() at once when the store does not answer.
  bool waits_for_store = true;
  std::uint64_t extent_bytes_max = std::uint64_t{64} << 20;
  std::uint64_t delta_bytes_min = std::uint64_t{4} << 20;
  UploadLimits uploads{};
  HeadRetention heads{};
  /// Receives the report of each replication.
  std::function<void(const ReplicateReport&)> replicated{};
  /// Bytes of new data after which the final parts of an open version are uploaded; 0: nothing is
  /// uploaded before a seal.
  std::uint64_t early_bytes = std::uint64_t{64} << 20;
  std::size_t locks_at_once = kLocksAtOnce;
  /// Receives the report of each extension of locks.
  std::function<void(const LockReport&)> locks_extended{};
};
/// Returns how to open a repository's store: the opener of the hooks, otherwise with `access`.
[[nodiscard]] BucketOpener bucket_opener(const BucketHooks& hooks, const StoreAccess& access);

/// The object store of an open repository. Thread-safe after start().
class BucketSide {
 public:
  /// Returns null for a local repository. Errors: kReadOnly to write in an attached folder.
  [[nodiscard]] static Result<std::unique_ptr<BucketSide>> open(const std::string& path,
                                                                const OpenOptions& options,
                                                                const BucketHooks& hooks);
  ~BucketSide();

  /// A newer head than the folder has.
  struct NewerHead {
    std::string known{};   ///< The text of the folder's head.
    std::string newest{};  ///< The text of the newest head.
  };
  /// Brings an attached folder to the newest head, if the store answers and no other process is
  /// refreshing the folder. `newer`: the result of end_look(), which saves a request. In a writer's
  /// folder, learns the data that the store has. Call after the folder was locked, and before the
  /// catalog is opened.
  [[nodiscard]] Result<void> refresh(const crypto::KeyRing* keys,
                                     const std::optional<NewerHead>& newer = {});
  /// Begins to ask the store for the newest head, in a thread. Returns false, and does nothing, for
  /// folders without a head and for writers' folders: both need refresh(). bucket_side_look.cc.
  [[nodiscard]] Result<bool> begin_look();
  /// Waits for the answer. Returns nullopt if the folder has the newest head, or if the store does
  /// not answer. Otherwise the folder needs refresh(). Errors: as for refresh().
  [[nodiscard]] Result<std::optional<NewerHead>> end_look(const crypto::KeyRing* keys);
  /// Ends all requests. The object is of no further use.
  void end_requests() { bucket_->stop(); }
  /// Opens a segment store, as store::StoreOpener. Segments and volumes are read from the object
  /// store: all files of an attached folder, and the evicted files of the writer's folder.
  /// Lifetime: the BucketSide outlives the segment store.
  [[nodiscard]] std::unique_ptr<store::SegmentStore> segments(io::FileSystem& files,
                                                              const std::string& directory);

  /// Begins to replicate a repository open for writing.
  /// Lifetime: `catalog` outlives stop().
  [[nodiscard]] Result<void> start(const meta::Env& catalog, const std::string& repository_id,
                                   std::shared_ptr<const crypto::KeyRing> keys);
  /// Keeps the catalog's present snapshot open, so that the first head costs only the later
  /// changes. Call before the process writes to the catalog. Lifetime: `catalog` outlives stop().
  void hold(const meta::Env& catalog);
  /// Call before each write to the catalog.
  void before_write(const meta::Env& catalog) { kept_.before_write(catalog); }
  /// Tries whether the store has locks. Errors: as for require_locks().
  [[nodiscard]] Result<void> allow_lock(const ObjectLock& lock);
  /// `labelled` returns the labels' sequence number; `remember` receives the number once the store
  /// has the state before the number. Call before start().
  void watch_sequence(std::function<std::uint64_t()> labelled,
                      std::function<void(std::uint64_t)> remember) {
    labelled_ = std::move(labelled);
    remember_ = std::move(remember);
  }
  /// Sets the lock of objects written from now on.
  void set_lock(const ObjectLock& lock) { bucket_->set_rule(lock); }
  /// Asks for a replication in the background.
  void notify();
  /// Returns whether a data file of the writer's folder, by its path, is only in the store.
  [[nodiscard]] Result<bool> is_evicted(const std::string& path);
  /// Return the limits of cached bytes in the folder: of files, and of blocks of evicted files.
  [[nodiscard]] std::uint64_t cached_file_bytes() const;
  [[nodiscard]] std::uint64_t cached_block_bytes() const;
  /// Numbers in the folder's state, as ReplicaState::number(). Only after start().
  [[nodiscard]] Result<std::uint64_t> number(std::string_view purpose);
  [[nodiscard]] Result<void> set_number(std::string_view purpose, std::uint64_t value);
  /// Returns the bytes of new data after which a series calls upload_early(); 0 for never.
  [[nodiscard]] std::uint64_t early_bytes() const { return reads_only() ? 0 : hooks_.early_bytes; }
  /// Has segments of open versions uploaded before the seal, in the background if there is a
  /// thread. Costs nothing if no segment was begun since the last call. Logs errors: the following
  /// replication meets the same errors.
  void upload_early();
  /// Drops the cache of data read from the store, because the cache may hold wrong data.
  void drop_cached() { data_->drop_cached(); }
  /// From now on caches only bytes left unread, as DistantData::will_read_once().
  void will_read_once() { data_->will_read_once(); }
  /// Ends reads waiting for the store with kUnavailable, and all later reads of segments and
  /// volumes. The replication repeats its own reads. Thread-safe; may be called again.
  void end_reads() {
    data_->end_reads();
    bucket_->interrupt_reads();
  }
  /// Removes replicated data from the disk if the data exceeds the limit, or if the disk is nearly
  /// full for `wanted` more bytes. Returns whether any data was removed. Logs errors. Only after
  /// start(). Thread-safe.
  bool evict(std::uint64_t wanted = 0);
  /// Call before start(). Lifetime: `guard` outlives stop().
  void watch_disk(const store::SpaceGuard& guard) { guard_ = &guard; }
  /// Returns how many bytes the folder's disk may still take before writers should wait for the
  /// store. First removes data from a disk without room for `wanted` bytes. Returns 0 if a
  /// replication may make room, and nullopt if nothing can. Only after start(). Thread-safe.
  [[nodiscard]] std::optional<std::uint64_t> disk_room(std::uint64_t wanted);
  /// Returns the bound on stored but unreplicated data; null without replication in the background.
  /// Lifetime: as the BucketSide.
  [[nodiscard]] StagingBound* bound() { return bound_.get(); }
  /// Ends the thread, then replicates the sealed versions, and waits for the end. Errors: as for
  /// Replicator::replicate(); kInterrupted after StoreUse::waiting returned false.
  [[nodiscard]] Result<void> finish();
  /// Brings an attached folder to newer heads every `interval`. Does nothing in a writer's folder.
  /// Lifetime: `catalog`, open for writing, outlives stop().
  /// Errors: as for opening the folder's state for writing.
  [[nodiscard]] Result<void> follow(const meta::Env& catalog,
                                    std::shared_ptr<const crypto::KeyRing> keys,
                                    std::chrono::milliseconds interval);
  /// Ends the threads, and all requests.
  void stop();
  /// Returns the lease kept in the folder; nullopt without a readable lease.
  [[nodiscard]] Result<std::optional<Lease>> lease(const crypto::KeyRing* keys);
  /// Returns the requests since the opening.
  [[nodiscard]] bucket::Traffic traffic() const;

  /// Returns whether another folder writes to the store. Only after start().
  [[nodiscard]] bool is_fenced() const { return replicator_ && replicator_->is_fenced(); }
  [[nodiscard]] bool reads_only() const { return config_.reads_only; }
  [[nodiscard]] const BucketConfig& config() const { return config_; }
  [[nodiscard]] bucket::Bucket& bucket() { return *bucket_; }

 private:
  BucketSide(std::string path, BucketConfig config, StoreUse use, const BucketHooks& hooks)
      : path_(std::move(path)), config_(std::move(config)), use_(std::move(use)), hooks_(hooks) {}
  /// Extends the locks of the newest head's objects. Logs errors.
  void extend_locks();
  void end_thread(bool at_once);
  /// Returns whether the store does not answer, so that the folder shows its present state. Logs
  /// the error.
  [[nodiscard]] static bool is_out_of_reach(const Error& error);
  [[nodiscard]] Result<void> replicate_all();
  [[nodiscard]] Result<ReplicateReport> replicate_once();
  void report(const ReplicateReport& done) const;
  /// Adds the new requests to the counts in the folder's state. Logs errors.
  void note_traffic();
  void replicate_in_background(const std::stop_token& stop);
  void upload_now();
  /// A segment or volume is begun.
  void begun();
  /// Starts the thread, if there is none. The caller holds mutex_.
  void start_thread();
  [[nodiscard]] Result<void> open_data();
  [[nodiscard]] Error explain(const Error& error);
  [[nodiscard]] const base::Clock& clock() const;

  const std::string path_;
  const BucketConfig config_;
  const StoreUse use_;
  const BucketHooks hooks_;
  const base::SystemClock system_clock_;
  bool read_only_ = false;
  std::unique_ptr<io::FileSystem> files_;  // The folder on disk.
  std::unique_ptr<bucket::LockingBucket> bucket_;
  LazyBucket* lazy_ = nullptr;  // In bucket_.
  std::unique_ptr<DistantData> data_;
  std::unique_ptr<LocalNotes> notes_;  // Null unless the process writes.
  std::unique_ptr<LocalData> local_;   // Null in an attached folder.
  KeptSnapshot kept_;
  std::unique_ptr<Replicator> replicator_;
  std::function<std::uint64_t()> labelled_;  // Of watch_sequence(), or empty.
  std::function<void(std::uint64_t)> remember_;
  const store::SpaceGuard* guard_ = nullptr;  // Of watch_disk().
  std::unique_ptr<StagingBound> bound_;
  bucket::Traffic noted_{};  // Requests in the folder's state already. Guarded by state_mutex_.
  std::mutex state_mutex_;   // Guards state_ from follow() on.
  std::unique_ptr<ReplicaState> state_;  // Set by follow().
  std::unique_ptr<HeadFollower> follower_;

  std::mutex mutex_;  // Guards the members below.
  std::condition_variable_any wake_;
  bool stopping_ = false;
  bool wanted_ = false;
  bool early_ = false;       // Segments of open versions are to be uploaded.
  bool any_begun_ = false;   // A file was begun since the last early upload.
  bool ever_begun_ = false;  // A file was begun since the opening.
  std::jthread thread_;
  std::atomic<bool> gives_up_ = false;      // StoreUse::waiting returned false.
  std::atomic<bool> wants_newest_ = false;  // Eviction waits for the store's newest head.

  std::string look_repository_;  // Of begin_look(), and the members below.
  std::string look_known_;
  std::optional<Result<std::string>> look_newest_;  // Set by the thread.
  std::jthread look_thread_;
};

}  // namespace varve::remote
