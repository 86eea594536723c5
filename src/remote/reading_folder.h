// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "crypto/key_ring.h"
#include "meta/lmdb.h"
#include "remote/bucket_folder.h"
#include "remote/head_follower.h"
#include "remote/head_request.h"
#include "remote/replica_state.h"
#include "varve/result.h"

namespace varve::remote {

/// The storage of an attached folder: all segments and volumes are read from the object store, and
/// another folder writes. Thread-safe.
class ReadingFolder final : public BucketFolder {
 public:
  /// Opens the folder, and brings the folder to the newest head, if the store answers and no other
  /// process is refreshing the folder; or asks for the newest head meanwhile, as `learning` says.
  /// Call after the folder was locked, and before the catalog is opened. `keys`: null in a plain
  /// repository. Errors: errors of the disk; kCorrupt or kWrongKey for a head not written with the
  /// keys; the reason why the store has no head.
  [[nodiscard]] static Result<std::unique_ptr<ReadingFolder>> open(FolderToOpen folder,
                                                                   const crypto::KeyRing* keys,
                                                                   HeadLearning& learning);
  ~ReadingFolder() override;

  [[nodiscard]] store::StoreOpener opener() override;
  [[nodiscard]] bool is_attached() const override { return true; }
  [[nodiscard]] bool may_be_ahead() const override { return false; }
  [[nodiscard]] EvictedFiles* evicted() override { return nullptr; }
  [[nodiscard]] Result<bool> follow(const meta::Env& catalog,
                                    std::shared_ptr<const crypto::KeyRing> keys,
                                    std::chrono::milliseconds interval,
                                    std::function<void()> changed) override;
  [[nodiscard]] std::uint64_t early_bytes() const override { return 0; }
  void before_write(const meta::Env&) override {}
  [[nodiscard]] Result<void> begin_writing(WrittenRepository) override { return {}; }
  [[nodiscard]] Replication& replication() override { return none_; }
  void stop() override { end(); }

 private:
  explicit ReadingFolder(FolderToOpen folder) : BucketFolder(std::move(folder)) {}
  /// Asks for the newest head in a thread. Returns null without a head in the folder.
  [[nodiscard]] Result<std::shared_ptr<HeadRequest>> ask();
  /// Brings the folder to the newest head: to `newer`, if no process has done so.
  [[nodiscard]] Result<void> refresh(const crypto::KeyRing* keys,
                                     const std::optional<NewerHead>& newer);
  void end();

  NoReplication none_;
  std::shared_ptr<HeadRequest> request_;    // Null without a request.
  std::unique_ptr<ReplicaState> followed_;  // Null until follow().
  std::unique_ptr<HeadFollower> follower_;
};

}  // namespace varve::remote
