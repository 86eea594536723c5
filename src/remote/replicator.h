// SPDX-License-Identifier: Apache-2.0
// Replicates a repository's sealed data to its object store. docs/ORDERING.md, "The object store".
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "bucket/bucket.h"
#include "crypto/key_ring.h"
#include "format/container_keys.h"
#include "io/file_system.h"
#include "meta/lmdb.h"
#include "remote/changes.h"
#include "remote/commit_log.h"
#include "remote/garbage.h"
#include "remote/head.h"
#include "remote/kept_snapshot.h"
#include "remote/local_notes.h"
#include "remote/replica_files.h"
#include "remote/replica_state.h"
#include "remote/upload_check.h"
#include "remote/uploads.h"
#include "varve/result.h"

namespace varve::remote {

/// The objects that a repository passes to its replicator.
/// Lifetime: all objects outlive the replicator.
struct ReplicatorParts {
  std::string root{};               ///< The repository's folder.
  io::FileSystem* files = nullptr;  ///< Shows files as they are on disk, encrypted files too.
  const meta::Env* catalog = nullptr;
  bucket::Bucket* bucket = nullptr;
  const base::Clock* clock = nullptr;
  std::string repository_id{};
  std::function<Result<std::string>()> superblock{};         ///< Returns the text of `varve.repo`.
  std::shared_ptr<const crypto::KeyRing> keys{};             ///< Null in a plain repository.
  std::uint64_t extent_bytes_max = std::uint64_t{64} << 20;  ///< Limit of one data object.
  /// Size up to which changes cause no new base by their size.
  std::uint64_t delta_bytes_min = std::uint64_t{4} << 20;
  std::string volume_class{};  ///< Storage class of volumes; empty for the store's default.
  UploadLimits uploads{};
  HeadRetention heads{};
  std::int64_t orphan_seconds = std::int64_t{30} * 24 * 60 * 60;  ///< Between lists of all objects.
  LocalNotes* notes = nullptr;
  /// Holds the snapshot of the newest head's catalog. If null, every call compares the whole
  /// catalog.
  KeptSnapshot* kept = nullptr;
  /// Returns the length of the objects' locks in seconds; 0 without locks. May be empty.
  std::function<std::int64_t()> lock_seconds{};
  /// Receives the map of objects of the newest head at the opening and after each head. `changed`:
  /// the files with changed extents; null for all files.
  std::function<void(const ObjectMap&, const std::set<std::string>* changed)> on_objects{};
};

/// The work of one call of replicate().
struct ReplicateReport {
  std::uint64_t head = 0;         ///< The newest head.
  bool committed = false;         ///< A head was created.
  std::uint64_t objects = 0;      ///< Uploaded objects, without the head.
  std::uint64_t bytes = 0;        ///< Bytes of the uploaded objects.
  std::uint64_t copies = 0;       ///< Objects copied inside the store without their dead end.
  bool is_full = false;           ///< The whole catalog was compared, and all files were examined.
  std::uint64_t records = 0;      ///< Records of the catalog compared or read.
  std::uint64_t files_read = 0;   ///< Files read, except segments and volumes.
  std::uint64_t local_bytes = 0;  ///< Bytes read from the folder, except from the catalog.
  /// Files uploaded although damaged. The folder keeps the files.
  std::vector<std::string> damages{};
};

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
  /// Returns whether another writer has created heads. Thread-safe.
  [[nodiscard]] bool is_fenced() const { return is_fenced_; }
  /// Returns the catalog's commit stored by the newest head; 0 before the first head. Thread-safe.
  [[nodiscard]] std::uint64_t replicated_commit() const { return commit_; }

 private:
  explicit Replicator(ReplicatorParts parts, ReplicaState state, meta::Env copy,
                      std::string holder);
  using Round = ReplicationRound;

  [[nodiscard]] Result<void> load();
  [[nodiscard]] Result<void> resolve_pending();
  [[nodiscard]] Result<void> check_newest();
  /// Compares the store's repository with this repository.
  [[nodiscard]] Result<void> check_place();
  /// Notes that another writer has created a head, and returns the error.
  [[nodiscard]] Error fenced(const Commit& other);
  [[nodiscard]] Error fenced_because(const std::string& reason);
  [[nodiscard]] Result<bool> is_rebuilt(const meta::Txn& catalog) const;
  void use_head(const std::string& text, Head head);
  [[nodiscard]] Result<bool> take_snapshot(Round& round);
  [[nodiscard]] Result<meta::ReadTxn> begin_snapshot(Round& round,
                                                     std::vector<ReplicaFile>& others);
  [[nodiscard]] Result<bool> compare(Round& round, const std::vector<ReplicaFile>& others,
                                     const meta::ReadTxn* last, const meta::ReadTxn& now);
  [[nodiscard]] Result<void> find_all(Round& round, const meta::ReadTxn& now);
  /// Finds the differences from the snapshot `last` of the newest head. Returns false if the
  /// snapshot does not show all differences.
  [[nodiscard]] Result<bool> find_changed(Round& round, const meta::ReadTxn& last,
                                          const meta::ReadTxn& now);
  [[nodiscard]] bool add_others(Round& round, const std::vector<ReplicaFile>& others) const;
  [[nodiscard]] Result<void> find_early(Round& round) const;
  [[nodiscard]] Result<void> upload_files(Round& round);
  [[nodiscard]] Result<void> keep_equal_front(const ReplicaFile& file,
                                              std::vector<Extent>& extents);
  [[nodiscard]] Result<void> cut_objects(Round& round, const std::string& path);
  [[nodiscard]] Result<bool> upload_file(Round& round, const ReplicaFile& file);
  [[nodiscard]] Result<Extent> upload_extent(Round& round, io::File& file, const ReplicaFile& which,
                                             std::uint64_t offset, std::uint64_t bytes);
  /// Verifies the checksums of the containers in `bytes`, which begin at `offset` of a file. Notes
  /// damage, and returns the damage.
  [[nodiscard]] Result<std::optional<std::string>> check_extent(const FileContainers& containers,
                                                                io::File& file,
                                                                const std::string& path,
                                                                std::uint64_t offset,
                                                                std::span<std::byte> bytes);
  [[nodiscard]] Result<void> upload_catalog(Round& round, Head& head);
  [[nodiscard]] Result<void> forget_changes(const std::set<std::string>& changed);
  [[nodiscard]] Result<Head> next_head(const Round& round) const;
  [[nodiscard]] Result<void> create_head(const std::string& text);
  void note_path(const std::string& path);
  /// Makes an existing head the newest known head.
  [[nodiscard]] Result<void> adopt(const std::string& text, std::vector<std::string> parts);
  /// Returns the name of a new object. `content`: text that differs between contents.
  [[nodiscard]] Result<std::string> new_name(const char* folder, std::string_view content) const;
  [[nodiscard]] Result<std::uint64_t> clean_up();
  /// Writes the lease if this folder has begun to write.
  void announce();

  const ReplicatorParts parts_;
  CommitLog log_;
  ReplicaState state_;
  meta::Env copy_;  // The catalog of the newest head.
  const std::string holder_;
  const std::unique_ptr<const format::ContainerKeys> container_keys_;  // Null if plain.
  std::atomic<std::uint64_t> commit_ = 0;
  using Time = std::chrono::steady_clock::time_point;
  std::atomic<bool> is_fenced_ = false;
  std::atomic<Time> newest_at_ = Time();  // The time of the last head; Time() if fenced.

  std::mutex mutex_;  // Guards the members below.
  bool loaded_ = false;
  bool checked_ = false;       // The known head is the newest head of the store.
  bool announced_ = false;     // The lease was checked.
  bool copies_ranges_ = true;  // False once the store has refused to copy.
  bool may_remove_ = true;     // False once the store has refused to remove an object.
  std::optional<Error> fenced_;
  std::string head_text_;  // Empty before the first head.
  Head head_;
  ObjectMap objects_;
  std::set<std::string> others_;           // Files in objects_ except segments and volumes.
  std::set<std::string> uncut_;            // Files with objects whose dead end is worth a copy.
  std::map<std::string, FileLook> looks_;  // To be remembered with the next head.
  std::set<std::string> doubtful_;         // Objects whose upload this process has begun.
  std::vector<std::string> damages_;       // Found since the newest head.
  std::uint64_t base_bytes_ = 0;           // Bytes of the head's base catalog objects.
  std::uint64_t delta_bytes_ = 0;
};

}  // namespace varve::remote
