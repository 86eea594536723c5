// SPDX-License-Identifier: Apache-2.0
// Replicates a repository's sealed data to its object store. docs/ORDERING.md, "The object store".
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "meta/lmdb.h"
#include "remote/change_finder.h"
#include "remote/changes.h"
#include "remote/commit_log.h"
#include "remote/head.h"
#include "remote/object_uploader.h"
#include "remote/replica_state.h"
#include "remote/replicator_parts.h"
#include "varve/result.h"

namespace varve::remote {

struct ReplicationRound;

/// Replicates the state of a repository that this process has open for writing. Thread-safe: calls
/// run one after the other.
///
/// A head is created only with the number after the newest known head, and only if no head with the
/// number exists. So of two writers starting from one state, only the first writer continues. The
/// second writer is fenced: it uploads nothing more, and its local data stays.
class Replicator {
 public:
  /// Opens the folder's state. Errors: errors of ReplicaState::open().
  [[nodiscard]] static Result<std::unique_ptr<Replicator>> open(ReplicatorParts parts);

  /// Replicates the catalog's last commit, and all files named by the commit. Does nothing, and
  /// sends no request, if nothing has changed since the newest head. After any error, another call
  /// continues the work.
  /// Errors: kLocked if another writer has created heads; errors of the bucket, the disk and the
  /// catalog.
  [[nodiscard]] Result<ReplicateReport> replicate();

  /// Uploads segments of open versions that will not grow any more, for the head after the
  /// versions' seal, and notes the segments. Creates no head. Returns the number of uploaded
  /// objects.
  /// Errors: as replicate(), which continues the work.
  [[nodiscard]] Result<std::uint64_t> upload_early();

  /// Returns the names SERIES/VERSION of sealed versions missing or different in the newest head.
  [[nodiscard]] Result<std::vector<std::string>> unreplicated() const;

  /// Removes objects that no head has named for a day, and occasionally old heads. Occasionally
  /// searches for objects left by a killed process. Only the process that created the newest head
  /// removes objects. Returns the number of removed objects; 0 if the key may not remove objects,
  /// which is logged once. Errors: errors of the bucket.
  [[nodiscard]] Result<std::uint64_t> remove_garbage();

  /// Returns the folder's state, because a process may open the state only once.
  [[nodiscard]] ReplicaState& state() { return state_; }

  /// Unless is_newest(), asks the store whether the known head is the newest head, by two requests.
  /// A rebuilt catalog does not count as newest until its first head. Errors: as replicate().
  [[nodiscard]] Result<void> confirm_newest();
  /// Returns whether, within the last hour, this process created the newest head or found the known
  /// head to be the newest. Another writer may have created newer heads since then, but for a day
  /// removes no object named by the known head (O48). Thread-safe.
  [[nodiscard]] bool is_newest() const {
    const auto at = newest_at_.load();
    return at != Time() && std::chrono::steady_clock::now() - at < std::chrono::hours(1);
  }
  /// Asks the store, by up to two requests, whether another writer has created the head after the
  /// known head. Returns the answer. After true, is_fenced() returns true, and the next replicate()
  /// returns the error with the other writer. Waits for no other call. Errors: errors of the
  /// bucket.
  [[nodiscard]] Result<bool> find_other_writer();
  /// Returns whether another writer has created heads, or had at the opening. Thread-safe.
  [[nodiscard]] bool is_fenced() const { return is_fenced_; }

 private:
  explicit Replicator(ReplicatorParts parts, ReplicaState state, meta::Env copy,
                      std::string holder);
  using Round = ReplicationRound;

  [[nodiscard]] Result<void> load();
  [[nodiscard]] Result<void> resolve_pending();
  [[nodiscard]] Result<void> check_newest();
  /// If is_fenced(), asks the store again. Errors: kLocked if another writer has created heads.
  [[nodiscard]] Result<void> settle_fence();
  /// Compares the store's repository with this repository.
  [[nodiscard]] Result<void> check_place();
  /// Returns an error if the store has a head of another writer, or lacks the known head.
  [[nodiscard]] Result<void> expect_none(const Result<std::optional<Commit>>& other);
  /// Notes that another writer has created a head, and returns the error.
  [[nodiscard]] Error fenced(const Commit& other);
  [[nodiscard]] Error fenced_because(const std::string& reason);
  void use_head(const std::string& text, Head head);
  [[nodiscard]] Result<void> forget_changes(const std::set<std::string>& changed);
  [[nodiscard]] Result<Head> next_head(const Round& round) const;
  [[nodiscard]] Result<void> create_head(const std::string& text);
  /// Makes an existing head the newest known head.
  [[nodiscard]] Result<void> adopt(const std::string& text, std::vector<std::string> parts);
  [[nodiscard]] Result<std::uint64_t> clean_up();
  /// Writes the lease if this folder has begun to write.
  void announce();

  const ReplicatorParts parts_;
  CommitLog log_;
  ReplicaState state_;
  meta::Env copy_;  // The catalog of the newest head.
  const std::string holder_;
  using Time = std::chrono::steady_clock::time_point;
  std::atomic<bool> is_fenced_ = false;
  std::atomic<Time> newest_at_ = Time();  // The time of the last head; Time() if fenced.

  struct KnownCommit {
    std::mutex mutex;  // Guards `commit`. Innermost.
    Commit commit;
  };
  KnownCommit known_;  // The newest known head.

  std::mutex mutex_;  // Guards the members below.
  bool loaded_ = false;
  bool checked_ = false;    // The known head is the newest head of the store.
  bool announced_ = false;  // The lease was checked.
  bool may_remove_ = true;  // False once the store has refused to remove an object.
  std::optional<Error> fenced_;
  std::string head_text_;  // Empty before the first head.
  Head head_;
  ObjectMap objects_;
  std::vector<std::string> damages_;  // Found since the newest head.
  ChangeFinder finder_;
  ObjectUploader uploader_;
};

}  // namespace varve::remote
