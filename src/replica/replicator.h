// SPDX-License-Identifier: Apache-2.0
// Brings a repository's sealed data into its object store. docs/ORDERING.md, "The object store".
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
#include "replica/changes.h"
#include "replica/commit_log.h"
#include "replica/garbage.h"
#include "replica/head.h"
#include "replica/kept_snapshot.h"
#include "replica/local_notes.h"
#include "replica/replica_files.h"
#include "replica/replica_state.h"
#include "replica/upload_check.h"
#include "replica/uploads.h"
#include "varve/result.h"

namespace varve::replica {

/// The objects that a repository lends to its replicator.
/// Lifetime: everything outlives the replicator.
struct ReplicatorParts {
  std::string root{};               ///< The repository's folder.
  io::FileSystem* files = nullptr;  ///< Shows files as they are on disk, encrypted ones too.
  const meta::Env* catalog = nullptr;
  bucket::Bucket* bucket = nullptr;
  const base::Clock* clock = nullptr;
  std::string repository_id{};
  std::function<Result<std::string>()> superblock{};         ///< Returns the text of `varve.repo`.
  std::shared_ptr<const crypto::KeyRing> keys{};             ///< Null in a plain repository.
  std::uint64_t extent_bytes_max = std::uint64_t{64} << 20;  ///< Limit of one data object.
  /// Bytes of changes that are always kept before a new base.
  std::uint64_t delta_bytes_min = std::uint64_t{4} << 20;
  std::string volume_class{};  ///< Storage class of volumes; empty for the store's default.
  UploadLimits uploads{};
  HeadRetention heads{};
  std::int64_t orphan_seconds = std::int64_t{30} * 24 * 60 * 60;  ///< Between lists of all objects.
  LocalNotes* notes = nullptr;
  /// Has the catalog's snapshot of the newest head. Null to compare the whole catalog always.
  KeptSnapshot* kept = nullptr;
  /// Returns the length of the objects' locks in seconds; 0 without locks. May be empty.
  std::function<std::int64_t()> lock_seconds{};
  /// Receives the map of objects of the newest head at the opening and after each head, and the
  /// files whose extents are others than before: null for all.
  std::function<void(const ObjectMap&, const std::set<std::string>* changed)> on_objects{};
};

/// The work of one call of replicate().
struct ReplicateReport {
  std::uint64_t head = 0;         ///< The newest head.
  bool committed = false;         ///< A head was created.
  std::uint64_t objects = 0;      ///< Objects that were uploaded, without the head.
  std::uint64_t bytes = 0;        ///< Their bytes.
  std::uint64_t copies = 0;       ///< Objects whose dead end a copy inside the store has left out.
  bool is_full = false;           ///< The whole catalog was compared, and all files were looked at.
  std::uint64_t records = 0;      ///< Records of the catalog that were compared or read.
  std::uint64_t files_read = 0;   ///< Files other than segments and volumes that were read.
  std::uint64_t local_bytes = 0;  ///< Bytes that were read from the folder, catalog excepted.
  /// Files with damage that this call uploaded all the same. The folder keeps them.
  std::vector<std::string> damages{};
};

struct ReplicationRound;

/// Replicates the state of a repository that this process has open for writing. Thread-safe: calls
/// run one after the other.
///
/// A head is created only with the number after the newest known one, and only if no such head
/// exists. So of two writers that begin at one state only the first one goes on; the other one is
/// fenced: it uploads nothing more, and its local data stays.
class Replicator {
 public:
  /// Opens the folder's state. Errors: those of ReplicaState::open().
  [[nodiscard]] static Result<std::unique_ptr<Replicator>> open(ReplicatorParts parts);

  /// Replicates the catalog's last commit, and all files that it names. Does nothing, without a
  /// request, if nothing has changed since the newest head. After any error, another call goes on
  /// with what was left.
  /// Errors: kLocked if another writer has created heads; those of the bucket, the disk and the
  /// catalog.
  [[nodiscard]] Result<ReplicateReport> replicate();

  /// Uploads segments of open versions that will not grow any more, for the head that follows their
  /// seal, and notes them. Creates no head. Returns the number of objects that were uploaded.
  /// Errors: as replicate(), which goes on with what was left.
  [[nodiscard]] Result<std::uint64_t> upload_early();

  /// Returns the names SERIES/VERSION of sealed versions that the newest head lacks or has in
  /// another state.
  [[nodiscard]] Result<std::vector<std::string>> unreplicated() const;

  /// Removes objects that no head has named for a day, and rarely old heads. Looks rarely for
  /// objects that a killed process left. Only the process that created the newest head does so.
  /// Returns the number of removed objects; 0 if the key may not remove any, which is logged once.
  /// Errors: those of the bucket.
  [[nodiscard]] Result<std::uint64_t> remove_garbage();

  /// Returns the folder's state, which this process has open only once.
  [[nodiscard]] ReplicaState& state() { return state_; }

  /// Asks the store whether the known head is the newest one, unless is_newest() is true: two
  /// requests. A catalog that was rebuilt since that head does not make it so. Errors: as
  /// replicate().
  [[nodiscard]] Result<void> confirm_newest();
  /// Returns whether this process has created the newest head within the last hour, or found that
  /// it is the known one. Another writer may have created newer ones since then, but removes no
  /// object that this head names for a day (O48). Thread-safe.
  [[nodiscard]] bool is_newest() const {
    const auto at = newest_at_.load();
    return at != Time() && std::chrono::steady_clock::now() - at < std::chrono::hours(1);
  }
  /// Returns whether another writer has created heads. Thread-safe.
  [[nodiscard]] bool is_fenced() const { return is_fenced_; }
  /// Returns the catalog's commit that the newest head has; 0 before the first one. Thread-safe.
  [[nodiscard]] std::uint64_t replicated_commit() const { return commit_; }

 private:
  explicit Replicator(ReplicatorParts parts, ReplicaState state, meta::Env copy,
                      std::string holder);
  using Round = ReplicationRound;

  [[nodiscard]] Result<void> load();
  [[nodiscard]] Result<void> resolve_pending();
  [[nodiscard]] Result<void> check_newest();
  /// Compares the repository that the store has with this one.
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
  /// Finds what differs from the snapshot `last`, which the newest head has. Returns false if that
  /// does not tell all.
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
  /// Compares the containers in bytes of a file, which begin at `offset`, with their checksums.
  /// Notes damage, and returns it.
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
  /// Makes a head that exists the newest known one.
  [[nodiscard]] Result<void> adopt(const std::string& text, std::vector<std::string> parts);
  /// Returns the name of a new object. `content` tells what the object has from any other content.
  [[nodiscard]] Result<std::string> new_name(const char* folder, std::string_view content) const;
  [[nodiscard]] Result<std::uint64_t> clean_up();
  /// Writes the lease if this folder has begun to write.
  void announce();

  const ReplicatorParts parts_;
  CommitLog log_;
  ReplicaState state_;
  meta::Env copy_;  // The catalog as the newest head has it.
  const std::string holder_;
  const std::unique_ptr<const format::ContainerKeys> container_keys_;  // Null if plain.
  std::atomic<std::uint64_t> commit_ = 0;
  using Time = std::chrono::steady_clock::time_point;
  std::atomic<bool> is_fenced_ = false;
  std::atomic<Time> newest_at_ = Time();  // The time of the last head; Time() if fenced.

  std::mutex mutex_;  // Guards the members below.
  bool loaded_ = false;
  bool checked_ = false;       // The newest head of the store is the known one.
  bool announced_ = false;     // The lease was looked at.
  bool copies_ranges_ = true;  // False once the store has refused to copy.
  bool may_remove_ = true;     // False once the store has refused to remove an object.
  std::optional<Error> fenced_;
  std::string head_text_;  // Empty before the first head.
  Head head_;
  ObjectMap objects_;
  std::set<std::string> others_;           // Files in objects_ that are no data.
  std::set<std::string> uncut_;            // Files with objects whose dead end is worth a copy.
  std::map<std::string, FileLook> looks_;  // To be remembered with the next head.
  std::set<std::string> doubtful_;         // Objects whose upload this process has begun.
  std::vector<std::string> damages_;       // Found since the newest head.
  std::uint64_t base_bytes_ = 0;           // Of the head's catalog objects.
  std::uint64_t delta_bytes_ = 0;
};

}  // namespace varve::replica
