// SPDX-License-Identifier: Apache-2.0
// A folder's knowledge of a repository in an object store: the folder `replica`.
// docs/FORMAT.md §15.4.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "bucket/bucket.h"
#include "io/file_system.h"
#include "meta/lmdb.h"
#include "remote/changes.h"
#include "remote/head.h"
#include "remote/replica_files.h"
#include "store/repository_paths.h"
#include "varve/result.h"

namespace varve::remote {

/// The end of an object's lock, in seconds since 1970 by the store's clock.
struct ObjectLockEnd {
  std::string name{};
  std::int64_t ends_s = 0;  ///< 0 if unknown.
};

/// Limits for the locks of objects to remove, in seconds since 1970.
struct GarbageLocks {
  /// A noted lock ends before this time.
  std::int64_t noted_before = std::numeric_limits<std::int64_t>::max();
  /// An object without a noted lock became garbage before this time.
  std::int64_t unknown_before = std::numeric_limits<std::int64_t>::max();
};

/// The newest head known to the folder, and the head's map of objects. Thread-safe: each call is
/// one transaction. Several processes may read beside one writer, but a process opens the state
/// only once at a time.
class ReplicaState {
 public:
  /// Opens the state of the repository at `root`. Unless `read_only`, creates the state if needed,
  /// and the caller holds the repository's lock.
  /// Lifetime: `files` outlives the state.
  [[nodiscard]] static Result<ReplicaState> open(io::FileSystem& files, const std::string& root,
                                                 bool read_only);

  [[nodiscard]] const meta::Env& env() const { return *env_; }
  /// Returns the text of the newest head; nullopt before the first head.
  [[nodiscard]] Result<std::optional<std::string>> head() const;
  /// Returns the text of the pending head: its creation began and may have succeeded.
  [[nodiscard]] Result<std::optional<std::string>> pending() const;
  /// Durably notes that the creation of a head begins.
  [[nodiscard]] Result<void> set_pending(const std::string& head);
  /// Notes, and returns the note, that another writer has created heads; nullopt without a note.
  [[nodiscard]] Result<void> set_fenced(const std::string& message);
  [[nodiscard]] Result<std::optional<std::string>> fenced() const;
  /// Returns the map of objects of the newest head.
  [[nodiscard]] Result<ObjectMap> objects() const;

  /// Returns the extents uploaded since the newest head, by key in the map.
  [[nodiscard]] Result<std::map<std::string, Extent>> uploaded() const;
  [[nodiscard]] Result<void> add_uploaded(const std::string& key, const Extent& extent);

  /// Makes the pending head the newest head, because the head exists. `map`: the changes of the
  /// map. `dropped`: objects that the head does not name. `number`: the head's number. Remembers
  /// `looks`, and forgets the FileLooks of files leaving the map.
  [[nodiscard]] Result<void> commit(const std::string& head, const std::vector<std::string>& map,
                                    bool replaces_map, const std::set<std::string>& dropped,
                                    std::int64_t seconds, std::uint64_t number,
                                    const std::map<std::string, FileLook>& looks = {});
  /// Returns the FileLook of a file at the reading of its mark; nullopt if unknown.
  [[nodiscard]] Result<std::optional<FileLook>> look(const std::string& path) const;

  /// Returns the counts of requests sent to the store for this folder by all processes.
  [[nodiscard]] Result<bucket::Traffic> traffic() const;
  /// Adds to the counts of requests. Needs no lock of the repository.
  [[nodiscard]] Result<void> add_traffic(const bucket::Traffic& more);

  /// Adds to the map all segments and volumes added by the parts of a head. Removes nothing.
  [[nodiscard]] Result<void> add_objects(const std::vector<std::string>& map);

  /// Notes objects for removal later than `seconds`, once the head of the given number exists. An
  /// already noted object keeps its note. Returns the number of new notes.
  [[nodiscard]] Result<std::uint64_t> add_garbage(const std::vector<std::string>& names,
                                                  std::int64_t seconds, std::uint64_t number);
  /// Returns at most `max` objects noted before `before`, in seconds, whose head exists if the
  /// newest head is `head`. Omits possibly locked objects.
  [[nodiscard]] Result<std::vector<std::string>> garbage(std::int64_t before, std::uint64_t head,
                                                         std::size_t max,
                                                         const GarbageLocks& locks = {}) const;
  /// Notes objects again, as from `seconds` on, after a failed removal.
  [[nodiscard]] Result<void> postpone_garbage(const std::vector<std::string>& names,
                                              std::int64_t seconds);
  [[nodiscard]] Result<void> forget_garbage(const std::vector<std::string>& names);
  /// Returns the number of objects waiting for removal.
  [[nodiscard]] Result<std::uint64_t> garbage_count() const;

  /// Returns the known ends of locks, in seconds since 1970 by the store's clock.
  [[nodiscard]] Result<std::map<std::string, std::int64_t>> lock_ends() const;
  /// Adds ends of locks.
  [[nodiscard]] Result<void> set_lock_ends(const std::map<std::string, std::int64_t>& ends);
  /// Puts the objects `live` of the newest head, with the number `head`, in the order of their
  /// locks' ends. An unknown lock counts as ended at 0. Forgets the locks of objects neither in
  /// `live` nor garbage. From now on, commit() adds and drops objects.
  [[nodiscard]] Result<void> order_locks(const std::set<std::string>& live, std::uint64_t head);
  /// Forgets the order.
  [[nodiscard]] Result<void> forget_lock_order();
  [[nodiscard]] Result<bool> has_lock_order() const;
  /// Returns at most `max` live objects with locks ending from `from` to before `to`, in ascending
  /// order of the ends. Requires an order.
  [[nodiscard]] Result<std::vector<ObjectLockEnd>> locks_ending(std::int64_t from, std::int64_t to,
                                                                std::size_t max) const;

  /// Returns a number kept by the folder for a purpose, such as a time. 0 if there is none.
  [[nodiscard]] Result<std::uint64_t> number(std::string_view purpose) const;
  [[nodiscard]] Result<void> set_number(std::string_view purpose, std::uint64_t value);
  /// Returns a text kept by the folder for a purpose.
  [[nodiscard]] Result<std::optional<std::string>> text(std::string_view purpose) const;
  [[nodiscard]] Result<void> set_text(std::string_view purpose, std::string_view value);

 private:
  explicit ReplicaState(std::unique_ptr<meta::Env> env) : env_(std::move(env)) {}

  std::unique_ptr<meta::Env> env_;
};

/// Opens the copy of the newest head's catalog, in `replica/catalog`. The copy has the stored form
/// of the records, and needs no key.
[[nodiscard]] Result<meta::Env> open_copy(io::FileSystem& files, const std::string& root,
                                          bool read_only);
/// Returns whether the folder has a state.
[[nodiscard]] Result<bool> has_state(io::FileSystem& files, const std::string& root);
/// Opens the folder's state for reading; nullopt if the folder has no state.
[[nodiscard]] Result<std::optional<ReplicaState>> find_state(io::FileSystem& files,
                                                             const std::string& root);

}  // namespace varve::remote
