// SPDX-License-Identifier: Apache-2.0
// A folder's knowledge of a repository in an object store: the folder `replica`.
// docs/FORMAT.md §15.4.
#pragma once

#include <cstdint>
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
#include "remote/etag_notes.h"
#include "remote/garbage_notes.h"
#include "remote/head.h"
#include "remote/lock_notes.h"
#include "remote/replica_files.h"
#include "store/repository_paths.h"
#include "varve/result.h"

namespace varve::remote {

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
  /// Forgets the pending head, the note of set_fenced(), and the extents of add_uploaded(): the
  /// folder only reads the repository. No head names the uploaded objects.
  [[nodiscard]] Result<void> forget_writing();
  /// Returns the map of objects of the newest head.
  [[nodiscard]] Result<ObjectMap> objects() const;

  /// Returns the extents uploaded since the newest head, by key in the map.
  [[nodiscard]] Result<std::map<std::string, Extent>> uploaded() const;
  /// Adds such an extent, and notes the ETag of the extent's object unless empty.
  [[nodiscard]] Result<void> add_uploaded(const std::string& key, const Extent& extent,
                                          const std::string& etag = {});

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

  /// Return the notes about objects for removal, and about locks. Lifetime: as the state.
  [[nodiscard]] GarbageNotes garbage() const { return GarbageNotes(*env_); }
  [[nodiscard]] LockNotes locks() const { return LockNotes(*env_); }
  /// Returns the notes about ETags. commit() forgets the ETags of dropped objects.
  /// Lifetime: as the state.
  [[nodiscard]] EtagNotes etags() const { return EtagNotes(*env_); }

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

/// Returns the folder of the state, of the copy and of notes, in the repository at `root`.
[[nodiscard]] std::string replica_folder(const std::string& root);

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
