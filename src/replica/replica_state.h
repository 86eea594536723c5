// SPDX-License-Identifier: Apache-2.0
// The state of a repository in an object store, as a folder knows it: the folder `replica`.
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
#include "replica/changes.h"
#include "replica/head.h"
#include "replica/replica_files.h"
#include "store/repository_paths.h"
#include "varve/result.h"

namespace varve::replica {

/// The end of an object's lock, in seconds since 1970 by the store's clock.
struct ObjectLockEnd {
  std::string name{};
  std::int64_t ends_s = 0;  ///< 0 if it is not known.
};

/// Limits for the locks of objects that are to be removed, in seconds since 1970.
struct GarbageLocks {
  /// A lock that is noted ends before this time.
  std::int64_t noted_before = std::numeric_limits<std::int64_t>::max();
  /// An object whose lock is not noted became garbage before this time.
  std::int64_t unknown_before = std::numeric_limits<std::int64_t>::max();
};

/// The newest head that the folder knows, and the map of objects of that head. Thread-safe: each
/// call is one transaction. Several processes may read beside one writer, but a process opens the
/// state only once at a time.
class ReplicaState {
 public:
  /// Opens the state of the repository at `root`. Unless `read_only`, creates a missing one, and
  /// the caller holds the repository's lock.
  /// Lifetime: `files` outlives the state.
  [[nodiscard]] static Result<ReplicaState> open(io::FileSystem& files, const std::string& root,
                                                 bool read_only);

  [[nodiscard]] const meta::Env& env() const { return *env_; }
  /// Returns the text of the newest head, or nullopt before the first one.
  [[nodiscard]] Result<std::optional<std::string>> head() const;
  /// Returns the text of a head whose creation was begun and may have happened.
  [[nodiscard]] Result<std::optional<std::string>> pending() const;
  /// Notes, durably, that the creation of a head begins.
  [[nodiscard]] Result<void> set_pending(const std::string& head);
  /// Notes that another writer has created heads, and returns that note; nullopt if there is none.
  [[nodiscard]] Result<void> set_fenced(const std::string& message);
  [[nodiscard]] Result<std::optional<std::string>> fenced() const;
  /// Returns the map of objects of the newest head.
  [[nodiscard]] Result<ObjectMap> objects() const;

  /// Returns extents that were uploaded since the newest head, by their keys in the map.
  [[nodiscard]] Result<std::map<std::string, Extent>> uploaded() const;
  [[nodiscard]] Result<void> add_uploaded(const std::string& key, const Extent& extent);

  /// Notes that the pending head exists: it is the newest one from now on. `map` has the changes of
  /// the map, and `dropped` the names of objects that the head, of this number, does not name.
  /// `looks` are remembered, and those of files that leave the map are forgotten.
  [[nodiscard]] Result<void> commit(const std::string& head, const std::vector<std::string>& map,
                                    bool replaces_map, const std::set<std::string>& dropped,
                                    std::int64_t seconds, std::uint64_t number,
                                    const std::map<std::string, FileLook>& looks = {});
  /// Returns what a file looked like when its mark was read; nullopt if that is not known.
  [[nodiscard]] Result<std::optional<FileLook>> look(const std::string& path) const;

  /// Returns the requests that processes sent to the store for this folder.
  [[nodiscard]] Result<bucket::Traffic> traffic() const;
  /// Adds to them. Needs no lock of the repository.
  [[nodiscard]] Result<void> add_traffic(const bucket::Traffic& more);

  /// Adds the segments and volumes that the parts of a head add to the map, and removes none.
  [[nodiscard]] Result<void> add_objects(const std::vector<std::string>& map);

  /// Notes objects that may be removed later than `seconds`, once the head of this number exists.
  /// An object that is noted already keeps its note. Returns the number of new notes.
  [[nodiscard]] Result<std::uint64_t> add_garbage(const std::vector<std::string>& names,
                                                  std::int64_t seconds, std::uint64_t number);
  /// Returns at most `max` objects that were noted before `before`, in seconds, and whose head
  /// exists if the newest one is `head`. Omits those that may be locked.
  [[nodiscard]] Result<std::vector<std::string>> garbage(std::int64_t before, std::uint64_t head,
                                                         std::size_t max,
                                                         const GarbageLocks& locks = {}) const;
  /// Notes again, as from `seconds` on, objects that could not be removed.
  [[nodiscard]] Result<void> postpone_garbage(const std::vector<std::string>& names,
                                              std::int64_t seconds);
  [[nodiscard]] Result<void> forget_garbage(const std::vector<std::string>& names);
  /// Returns the number of objects that wait for their removal.
  [[nodiscard]] Result<std::uint64_t> garbage_count() const;

  /// Returns the ends of the locks that are known, in seconds since 1970 by the store's clock.
  [[nodiscard]] Result<std::map<std::string, std::int64_t>> lock_ends() const;
  /// Adds ends of locks.
  [[nodiscard]] Result<void> set_lock_ends(const std::map<std::string, std::int64_t>& ends);
  /// Puts the objects `live` of the newest head, which has this number, in the order of their
  /// locks' ends; an object whose lock is not known
  /// counts as one whose lock ended at 0. Forgets the locks of objects that are neither in `live`
  /// nor garbage. From now on, commit() adds and drops objects.
  [[nodiscard]] Result<void> order_locks(const std::set<std::string>& live, std::uint64_t head);
  /// Forgets the order.
  [[nodiscard]] Result<void> forget_lock_order();
  [[nodiscard]] Result<bool> has_lock_order() const;
  /// Returns at most `max` live objects whose locks end from `from` to before `to`, those that end
  /// first at the front. Only with an order.
  [[nodiscard]] Result<std::vector<ObjectLockEnd>> locks_ending(std::int64_t from, std::int64_t to,
                                                                std::size_t max) const;

  /// A number that the folder keeps for a purpose, such as a time. 0 if there is none.
  [[nodiscard]] Result<std::uint64_t> number(std::string_view purpose) const;
  [[nodiscard]] Result<void> set_number(std::string_view purpose, std::uint64_t value);
  /// A text that the folder keeps for a purpose.
  [[nodiscard]] Result<std::optional<std::string>> text(std::string_view purpose) const;
  [[nodiscard]] Result<void> set_text(std::string_view purpose, std::string_view value);

 private:
  explicit ReplicaState(std::unique_ptr<meta::Env> env) : env_(std::move(env)) {}

  std::unique_ptr<meta::Env> env_;
};

/// Opens the copy of the catalog of the newest head, in `replica/catalog`. Its records are as the
/// catalog stores them, and need no key.
[[nodiscard]] Result<meta::Env> open_copy(io::FileSystem& files, const std::string& root,
                                          bool read_only);
/// Returns whether the folder has a state.
[[nodiscard]] Result<bool> has_state(io::FileSystem& files, const std::string& root);
/// Opens the folder's state for reading; nullopt before it has one.
[[nodiscard]] Result<std::optional<ReplicaState>> find_state(io::FileSystem& files,
                                                             const std::string& root);

}  // namespace varve::replica
