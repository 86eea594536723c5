// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "remote/bucket_folder.h"
#include "remote/evictor.h"
#include "remote/folder_storage.h"
#include "remote/kept_snapshot.h"
#include "remote/local_data.h"
#include "remote/local_notes.h"
#include "remote/replication_thread.h"
#include "remote/replicator.h"
#include "remote/staging_bound.h"
#include "remote/writer_question.h"
#include "varve/object_store.h"
#include "varve/result.h"

namespace varve::remote {

/// The parts of a WritingFolder that its replication uses. Lifetime: all outlive the replication.
struct WriterParts {
  LocalData* local = nullptr;
  LocalNotes* notes = nullptr;
  KeptSnapshot* kept = nullptr;
};

/// Replicates the sealed data of a writer's folder to the object store: in a thread, or at the
/// closing. Bounds the unreplicated data, and evicts replicated data. Thread-safe.
class BucketReplication final : public Replication {
 public:
  /// Lifetime: `folder`, and the objects of `repository`, outlive the replication.
  /// Errors: as for Replicator::open().
  [[nodiscard]] static Result<std::unique_ptr<BucketReplication>> open(
      BucketFolder& folder, const WriterParts& parts, const WrittenRepository& repository);
  ~BucketReplication() override;

  void changed() override;
  void upload_early() override;
  void before_seal() override;
  [[nodiscard]] Result<void> allow_lock(const ObjectLock& lock) override;
  void set_lock(const ObjectLock& lock) override { folder_.bucket().set_rule(lock); }
  [[nodiscard]] bool is_fenced() const override { return replicator_->is_fenced(); }
  [[nodiscard]] bool learn_fence(FenceAge age) override;
  [[nodiscard]] Result<void> finish() override;

  /// Learns that a segment or volume was begun.
  void begun();
  /// Ends the thread, and all requests of the thread.
  void stop() { end_thread(true); }

 private:
  BucketReplication(BucketFolder& folder, const WriterParts& parts,
                    const WrittenRepository& repository, std::unique_ptr<Replicator> replicator);
  void bound_writers(store::SpaceGuard& space);
  void end_thread(bool at_once);
  [[nodiscard]] Result<ReplicateReport> replicate_once();
  [[nodiscard]] Result<void> replicate_in_background();
  /// Replicates until the store has all sealed data, or no further attempt helps.
  [[nodiscard]] Result<void> replicate_all();
  void upload_now();
  void remove_garbage();
  /// Asks for another writer. Returns whether the store answered.
  bool ask_writer();
  /// Extends the locks of the newest head's objects. Logs errors.
  void extend_locks();
  [[nodiscard]] Error explain(const Error& error);

  BucketFolder& folder_;
  LocalData& local_;
  const std::function<std::uint64_t()> labelled_;
  const std::function<void(std::uint64_t)> remember_;
  const std::unique_ptr<Replicator> replicator_;
  Evictor evictor_;
  std::unique_ptr<StagingBound> bound_;   // Null without replication in the background.
  std::atomic<bool> any_begun_ = false;   // A file was begun since the last early upload.
  std::atomic<bool> ever_begun_ = false;  // A file was begun since begin_writing().
  std::atomic<bool> gives_up_ = false;    // StoreUse::waiting returned false.
  ReplicationThread thread_;
  WriterQuestion question_;
};

}  // namespace varve::remote
