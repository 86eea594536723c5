// SPDX-License-Identifier: Apache-2.0
// The pool: a store of containers to which the versions of all series may refer. A container is
// freed as a whole, when no version refers to the container any more (container-marker algorithm,
// Fu et al., ATC'14 §5, made exact for every retention).
#pragma once

#include <atomic>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/id_runs.h"
#include "base/ids.h"
#include "base/thread_pool.h"
#include "catalog/pool_records.h"
#include "format/frame_codec.h"
#include "layout/chunk_stream.h"
#include "layout/layout_metrics.h"
#include "layout/segment_ledger.h"
#include "layout/stored_chunks.h"
#include "meta/lmdb.h"
#include "store/open_files.h"
#include "store/segment_store.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::store {
class FoundDamage;
}  // namespace varve::store

namespace varve::layout {

/// A version that refers to chunks of the pool.
struct PoolOwner {
  SeriesId series{};
  VersionNumber version{};
  auto operator<=>(const PoolOwner&) const = default;
};

/// The effect of a deletion on the pool.
struct PoolDeletion {
  SegmentLedger ledger;
  std::vector<PoolOwner> gone;
  std::map<ContainerNumber, std::uint32_t> users;  ///< Remaining users of each container of `gone`.
  std::vector<ContainerNumber> dying;              ///< Containers to be freed. Ascending.
  base::IdRuns dead;                               ///< Chunks of `dying`.
  std::uint64_t chunks = 0;
  std::uint64_t chunk_bytes = 0;  ///< Raw size of `dead`.
  /// Raw size of the chunks in containers held only by open versions, and one of these versions.
  std::uint64_t waiting_bytes = 0;
  std::optional<PoolOwner> waiting_for;

  /// Writes the changes; the caller commits and then calls PoolStore::free().
  [[nodiscard]] Result<void> apply(meta::WriteTxn& txn) const;
};

/// The parts of the pool.
/// Lifetime: all parts outlive the pool.
struct PoolParts {
  const meta::Env& catalog;
  const format::FrameCodec& codec;
  base::ThreadPool* compressors = nullptr;  ///< Null if the repository is read-only.
  store::OpenFiles* open_files = nullptr;   ///< Null: the pool keeps its own open files.
  const LayoutMetrics* metrics = nullptr;   ///< Null: nothing is counted.
  store::FoundDamage* damage = nullptr;     ///< Null: damage is not remembered.
  bool read_only = false;
  /// Whether the last writer left no file in the pool that is unknown to the catalog.
  bool settled = false;
};

/// Raises the next container number to the first container number of the pool.
void begin_pool_numbers(store::NumberSource& numbers);

/// The pool of a repository. Thread-safe.
///
/// A container lives while a sealed version uses the container, or an open version may refer to it.
/// An open version *pins* each container before its first reference to the container.
///
/// Lock order: a lock of type Exclusive, then the mutexes of the streams and of the pins.
class PoolStore {
 public:
  /// Held to change the users of containers, or to free containers. All other changes to the pool,
  /// such as new containers, need no lock.
  class Exclusive {
   public:
    explicit Exclusive(PoolStore& pool) : lock_(pool.change_mutex_) {}

   private:
    std::unique_lock<std::mutex> lock_;
  };

  /// Opens the pool. Unless read-only, prepares the store. Unless settled, also removes the files
  /// and bytes left by a crash.
  [[nodiscard]] static Result<std::unique_ptr<PoolStore>> open(
      const PoolParts& parts, std::unique_ptr<store::SegmentStore> segments);

  [[nodiscard]] StoredChunks& chunks() { return chunks_; }
  [[nodiscard]] store::SegmentStore& segments() { return *segments_; }

  /// Starts a stream of new chunks of an open version, with a separate birth. The version pins the
  /// stream's containers.
  /// Errors: the errors of a commit.
  [[nodiscard]] Result<std::unique_ptr<ChunkStream>> start_stream(const PoolOwner& owner);

  /// Pins a container for an open version. Returns false if the container is freed, or being freed:
  /// the version must not refer to the container.
  [[nodiscard]] bool pin(const PoolOwner& owner, ContainerNumber container);
  /// Notes that an open version may refer to any container. No container is freed until the version
  /// ends.
  void pin_all(const PoolOwner& owner);
  /// Returns whether an open version may refer to the container.
  [[nodiscard]] bool is_pinned(ContainerNumber container);
  /// Ends the pins of a sealed or dropped version. Returns the version's containers.
  [[nodiscard]] std::vector<ContainerNumber> unpin(const PoolOwner& owner);

  /// Adds a version during its seal: `uses` are the containers used by the version. The caller
  /// holds Exclusive until the commit.
  [[nodiscard]] Result<void> add_users(meta::WriteTxn& txn, const PoolOwner& owner,
                                       const std::vector<catalog::PoolUse>& uses);

  /// Plans the deletion of sealed versions. No open version can pin the dying containers until the
  /// caller calls free() or keep(). The caller holds Exclusive until then.
  /// Lifetime: `txn` outlives the plan.
  [[nodiscard]] Result<PoolDeletion> plan_deletion(const meta::Txn& txn,
                                                   const std::vector<PoolOwner>& gone);
  /// Returns the plan that plan_deletion() would return after the deletion of `before`. No effect.
  [[nodiscard]] Result<PoolDeletion> forecast_deletion(const meta::Txn& txn,
                                                       const std::vector<PoolOwner>& gone,
                                                       const std::vector<PoolOwner>& before);
  /// Frees the files after the commit of a plan.
  [[nodiscard]] Result<void> free(const PoolDeletion& plan);
  /// Reverts plan_deletion() for an uncommitted plan.
  void keep(const PoolDeletion& plan);

  /// Frees the unused containers of `containers`. Returns the freed chunks.
  [[nodiscard]] Result<base::IdRuns> sweep(const std::vector<ContainerNumber>& containers);
  /// Retires the unpinned containers of `containers`, and returns them: no open version can pin
  /// them until release(). The caller holds Exclusive until release().
  [[nodiscard]] std::vector<ContainerNumber> retire(const std::vector<ContainerNumber>& containers);
  void release(const std::vector<ContainerNumber>& containers);
  /// Returns the number of plans of deletions so far. The caller holds Exclusive.
  [[nodiscard]] std::uint64_t deletions() const { return deletions_; }
  /// Returns the parts for code that moves chunks of the pool.
  [[nodiscard]] StoreParts store_parts();

  /// Returns all containers without a user, for sweep() after a crash. Reads the records of all
  /// containers.
  [[nodiscard]] Result<std::vector<ContainerNumber>> unused();

  /// Notes that a failure may have left a file unknown to the catalog, or a container without a
  /// user.
  void note_left_behind() { left_behind_ = true; }
  /// Returns whether the next writer has to search for unknown files and unused containers. Checks
  /// the files made by this object. No stream may be in use.
  [[nodiscard]] bool has_left_behind();
  /// Returns a birth such that all chunks of earlier births are in the catalog already: no stream
  /// adds chunks to earlier births.
  [[nodiscard]] Result<VersionNumber> complete_below();

 private:
  PoolStore(const PoolParts& parts, std::unique_ptr<store::SegmentStore> segments);
  void add_pin(const PoolOwner& owner, ContainerNumber container, bool is_stored);
  void remove_pin(const PoolOwner& owner, ContainerNumber container);
  using Users = std::map<ContainerNumber, std::uint32_t>;
  enum class Retire : bool { kNo, kYes };
  /// Subtracts the versions from the users of their containers. `users` has the containers counted
  /// so far.
  [[nodiscard]] Result<void> take_users(const meta::Txn& txn, const std::vector<PoolOwner>& gone,
                                        Users& users);
  [[nodiscard]] Result<PoolDeletion> plan(const meta::Txn& txn, std::vector<PoolOwner> gone,
                                          Users users, Retire retire);
  /// Divides the containers without users: sets the containers to free, and a version that holds
  /// the remaining containers.
  void divide(PoolDeletion& plan, Retire retire);
  [[nodiscard]] Result<void> remove(const meta::Txn& txn, PoolDeletion& plan);

  /// The births of the streams in use; each stream holds its own birth.
  class StreamBirths;

  const PoolParts parts_;
  const std::unique_ptr<store::SegmentStore> segments_;
  StoredChunks chunks_;
  store::NumberSource numbers_;
  SegmentNumber first_own_{};  // The first file that this object may make.
  std::atomic<bool> left_behind_{false};
  const std::shared_ptr<StreamBirths> births_;

  std::mutex change_mutex_;
  std::uint64_t deletions_ = 0;  // Guarded by Exclusive.
  std::mutex pins_mutex_;        // Guards the members below.
  struct Pins {
    std::map<ContainerNumber, bool> containers;  // Whether the container is known to be stored.
    bool all = false;
  };
  std::map<PoolOwner, Pins> pins_;
  std::map<ContainerNumber, std::uint32_t> pinned_;  // Number of owners pinning each container.
  std::uint32_t pinned_all_ = 0;
  std::set<ContainerNumber> retired_;
};

}  // namespace varve::layout
