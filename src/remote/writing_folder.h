// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "meta/lmdb.h"
#include "remote/bucket_folder.h"
#include "remote/bucket_replication.h"
#include "remote/evicted_files.h"
#include "remote/kept_snapshot.h"
#include "remote/local_data.h"
#include "remote/local_notes.h"
#include "varve/result.h"

namespace varve::remote {

/// The storage of the folder with the writer of a repository in an object store: sealed data is
/// replicated, and replicated data may be evicted from the disk. A process with the folder open
/// read-only reads evicted data, and replicates nothing. Thread-safe.
class WritingFolder final : public BucketFolder {
 public:
  /// Opens the folder, and loads the map of the store's data. Sends no request.
  /// Call after the folder was locked. Errors: as for reading the folder.
  [[nodiscard]] static Result<std::unique_ptr<WritingFolder>> open(FolderToOpen folder);
  ~WritingFolder() override { end(); }

  [[nodiscard]] store::StoreOpener opener() override;
  [[nodiscard]] bool is_attached() const override { return false; }
  [[nodiscard]] bool may_be_ahead() const override { return true; }
  [[nodiscard]] EvictedFiles* evicted() override { return &evicted_; }
  [[nodiscard]] Result<bool> follow(const meta::Env&, std::shared_ptr<const crypto::KeyRing>,
                                    std::chrono::milliseconds, std::function<void()>) override {
    return false;
  }
  [[nodiscard]] std::uint64_t early_bytes() const override { return hooks().early_bytes; }
  void before_write(const meta::Env& catalog) override;
  [[nodiscard]] Result<void> begin_writing(WrittenRepository repository) override;
  [[nodiscard]] Replication& replication() override;
  void stop() override { end(); }

 private:
  WritingFolder(FolderToOpen folder, std::unique_ptr<LocalNotes> notes);
  /// Keeps the catalog's snapshot before the first write of the process, so that the first head
  /// costs only the later changes.
  void keep_snapshot(const meta::Env& catalog);
  void end();

  const std::unique_ptr<LocalNotes> notes_;  // Null if the folder is open read-only.
  LocalData local_;
  EvictedFiles evicted_;
  std::once_flag snapshot_kept_;
  KeptSnapshot kept_;
  NoReplication none_;
  std::unique_ptr<BucketReplication> replication_;     // Null until begin_writing().
  std::atomic<BucketReplication*> running_ = nullptr;  // Equals replication_ once set.
};

}  // namespace varve::remote
