// SPDX-License-Identifier: Apache-2.0
// Where the data of an open repository is: on the local disk, or also in an object store.
// docs/decisions/156.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "bucket/bucket.h"
#include "crypto/key_ring.h"
#include "meta/lmdb.h"
#include "remote/evicted_files.h"
#include "remote/lease.h"
#include "store/folder_store.h"
#include "store/space_guard.h"
#include "varve/object_store.h"
#include "varve/replication.h"
#include "varve/result.h"
#include "varve/store_link.h"

namespace varve::remote {

/// A repository open for writing, as the storage of the repository's folder sees the repository.
/// Lifetime: the catalog and the guard outlive FolderStorage::stop().
struct WrittenRepository {
  const meta::Env* catalog = nullptr;
  std::string id{};
  std::shared_ptr<const crypto::KeyRing> keys{};  ///< Null in a plain repository.
  store::SpaceGuard* space = nullptr;             ///< The guard of the folder's disk.
  /// Returns the labels' sequence number; may be empty.
  std::function<std::uint64_t()> labelled{};
  /// Receives the result of `labelled` once the object store has the state before the number.
  std::function<void(std::uint64_t)> remember{};
};

/// The way of a writer's changes to the object store. Thread-safe.
class Replication {
 public:
  virtual ~Replication() = default;

  /// Requests a replication in the background, after a commit of the catalog.
  virtual void changed() = 0;
  /// Has segments of open versions uploaded before the seal. Costs nothing if no segment was begun
  /// since the last call. Logs errors: the following replication meets the same errors.
  virtual void upload_early() = 0;
  /// Waits before a seal while too much data waits for upload. The caller holds no lock.
  virtual void before_seal() = 0;
  /// Tries whether the store has locks. Errors: as for require_locks(); kInvalid without an object
  /// store.
  [[nodiscard]] virtual Result<void> allow_lock(const ObjectLock& lock) = 0;
  /// Sets the lock of objects written from now on.
  virtual void set_lock(const ObjectLock& lock) = 0;
  /// Returns whether another folder writes to the store.
  [[nodiscard]] virtual bool is_fenced() const = 0;
  /// Returns is_fenced(). First asks the store, as StoreLink::learn_fence().
  [[nodiscard]] virtual bool learn_fence(FenceAge age) = 0;
  /// Ends the work in the background, replicates the sealed versions, and waits for the end.
  /// Errors: as for Replicator::replicate(); kInterrupted after StoreUse::waiting returned false.
  [[nodiscard]] virtual Result<void> finish() = 0;
};

/// The replication of a repository without an object store, and of a repository not open for
/// writing: nothing to do.
class NoReplication final : public Replication {
 public:
  void changed() override {}
  void upload_early() override {}
  void before_seal() override {}
  [[nodiscard]] Result<void> allow_lock(const ObjectLock& lock) override;
  void set_lock(const ObjectLock&) override {}
  [[nodiscard]] bool is_fenced() const override { return false; }
  [[nodiscard]] bool learn_fence(FenceAge) override { return false; }
  [[nodiscard]] Result<void> finish() override { return {}; }
};

/// The storage of an open repository's folder. A folder is in one of three states, each a class:
///
/// | class | data | writers |
/// |---|---|---|
/// | LocalFolder | on the disk | this folder |
/// | WritingFolder | on the disk and, once sealed, in an object store; old data only there | this
/// folder | | ReadingFolder | in an object store, with a cache on the disk | another folder |
///
/// Thread-safe.
class FolderStorage {
 public:
  virtual ~FolderStorage() = default;

  /// Returns the opener of segment stores; empty if all data is on the disk.
  /// Lifetime: the storage outlives the segment stores.
  [[nodiscard]] virtual store::StoreOpener opener() = 0;
  /// Returns whether the folder only reads the repository, and another folder writes.
  [[nodiscard]] virtual bool is_attached() const = 0;
  /// Returns whether the folder may have changes that the object store has not.
  [[nodiscard]] virtual bool may_be_ahead() const = 0;
  /// Returns the files whose data may be in the object store only; null if data is never evicted.
  [[nodiscard]] virtual EvictedFiles* evicted() = 0;

  /// Drops the cache of data read from the store, because the cache may hold wrong data. Returns
  /// false if there is no cache.
  virtual bool drop_cached() = 0;
  /// From now on caches only bytes left unread, as DistantData::will_read_once().
  virtual void will_read_once() = 0;
  /// Ends reads waiting for the store with kUnavailable, and all later reads of segments and
  /// volumes. A replication repeats its own reads. May be called again.
  virtual void end_reads() = 0;
  /// Returns the requests since the opening.
  [[nodiscard]] virtual bucket::Traffic traffic() const = 0;
  /// Returns the lease kept in the folder; nullopt without a readable lease.
  [[nodiscard]] virtual Result<std::optional<Lease>> lease(const crypto::KeyRing* keys) = 0;
  /// Brings an attached folder to newer heads every `interval`, as follow_store(). Returns false,
  /// and does nothing, in other folders. Lifetime: `catalog`, open for writing, outlives stop().
  /// Errors: as for opening the folder's state for writing.
  [[nodiscard]] virtual Result<bool> follow(const meta::Env& catalog,
                                            std::shared_ptr<const crypto::KeyRing> keys,
                                            std::chrono::milliseconds interval,
                                            std::function<void()> changed) = 0;

  /// Returns the bytes of new data after which a series calls Replication::upload_early(); 0 for
  /// never.
  [[nodiscard]] virtual std::uint64_t early_bytes() const = 0;
  /// Learns of each write to the catalog, before the write. Lifetime: `catalog` outlives stop().
  virtual void before_write(const meta::Env& catalog) = 0;
  /// Begins to replicate. Errors: as for reading the folder's state.
  [[nodiscard]] virtual Result<void> begin_writing(WrittenRepository repository) = 0;
  /// Returns the replication: NoReplication until begin_writing(). Lifetime: as the storage.
  [[nodiscard]] virtual Replication& replication() = 0;

  /// Ends all threads, and the requests of the threads.
  virtual void stop() = 0;
};

}  // namespace varve::remote
