// SPDX-License-Identifier: Apache-2.0
// Repositories whose sealed data is in an object store (s3://BUCKET/PREFIX).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "varve/object_lock.h"
#include "varve/object_store.h"
#include "varve/options.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve {

class Repository;

/// ArrangeSettings::dead_permille of a new repository in an object store, unless the caller chooses
/// settings of the arranger. Arranging uploads what it writes there, so it does less.
inline constexpr std::uint32_t kStoreDeadPermille = 200;

/// Creates a repository in an empty object store, and its folder on this machine, which is the only
/// one that writes. The folder keeps as much of the data as StorePlace::cache_bytes says. An
/// interrupted call can be repeated.
/// With a `lock`, all objects of the repository are locked; see set_upkeep_settings() for a change.
/// Errors: kExists if the place or the folder has a repository; kUnsupported if the store does not
/// honour conditional requests, or has no locks; those of Repository::create() and of the store.
[[nodiscard]] Result<void> create_in_store(const StorePlace& place, const std::string& folder,
                                           const RepositoryParameters& parameters,
                                           const CreateOptions& options,
                                           const ObjectLock& lock = {});

/// Says what an attached folder does.
enum class AttachRole : std::uint8_t {
  kReads,   ///< It reads, beside the folder that writes.
  kWrites,  ///< It takes over: from now on it is the only one that writes.
};

/// Makes a folder that uses a repository in an object store. It has the catalog of the newest
/// replicated state, and reads file contents from the store when they are needed. An interrupted
/// call can be repeated; a call for a folder that is attached so already succeeds, and changes
/// nothing. Opening a folder that only reads brings it up to date.
/// A folder that takes over creates the next head. The folder that wrote before finds it, uploads
/// nothing more, and keeps versions that it had not replicated. Open versions do not come along.
/// Errors: kNoRepository; kNotEmpty if the folder has other files; kExists if it is another
/// repository, or has the other role; kWrongKey; kLocked if another folder wrote meanwhile, or has
/// taken over from this one; those of the store and the disk.
[[nodiscard]] Result<void> attach_to_store(const StorePlace& place, const std::string& folder,
                                           const OpenOptions& options,
                                           AttachRole role = AttachRole::kReads);

/// A folder of this machine that belongs to a place in an object store.
struct StoreFolder {
  std::string folder{};
  StorePlace place{};
  bool reads_only = false;  ///< The folder was attached.
};
/// Returns what the folder's own file `bucket` says; nullopt if it is no repository, or in no
/// object store.
/// Errors: those of reading the folder.
[[nodiscard]] Result<std::optional<StoreFolder>> store_folder_at(const std::string& folder,
                                                                 bool trust_owner = false);

/// Returns the text of a place in one form: "s3://BUCKET/PREFIX" without a last slash.
/// Errors: kInvalid with advice.
[[nodiscard]] Result<std::string> normalized_place(std::string_view text);

/// Remembers on this machine that a folder belongs to a place. `memory_folder` is that of
/// OpenOptions. Logs errors: commands then need the name of the folder.
void remember_store_folder(const std::string& memory_folder, const std::string& place,
                           const std::string& folder);
/// Returns the remembered folders of a place, those that write first, without those that do not
/// belong to it any more. `trusts` decides about OpenOptions::trust_owner.
[[nodiscard]] std::vector<StoreFolder> known_store_folders(
    const std::string& memory_folder, std::string_view place,
    const std::function<bool(const std::string& folder)>& trusts);
/// Returns the folders that this machine remembers of a place, those that are gone, too.
[[nodiscard]] std::vector<std::string> remembered_folders(const std::string& memory_folder,
                                                          std::string_view place);
/// Returns all places that this machine remembers.
[[nodiscard]] std::vector<std::string> known_places(const std::string& memory_folder);

/// Keeps an attached folder that is open as a repository up to date: looks for a newer replicated
/// state every `interval`. While the store fails, the folder stays as it is. Does nothing for other
/// repositories, and on a read-only disk.
/// Errors: those of opening the folder's state for writing.
[[nodiscard]] Result<void> follow_store(Repository& repository, std::chrono::milliseconds interval);

/// Ends the reads of data that wait for an object store, with kUnavailable, and lets later ones
/// fail at once. Uploads go on. For a program that is about to close the repository: what such a
/// read was for is left undone. Thread-safe; may be called again. Does nothing for other
/// repositories.
void end_store_reads(Repository& repository);

/// An ability of a store, such as {"conditional requests", "honoured"}.
struct StoreAbility {
  std::string name{};
  std::string value{};
};
/// The state of a folder of a repository in an object store.
struct ReplicationInfo {
  std::string place{};        ///< s3://BUCKET/PREFIX.
  bool reads_only = false;    ///< The folder was attached.
  std::uint64_t head = 0;     ///< Number of the newest replicated state; 0 before the first one.
  std::string fenced{};       ///< Message about another folder that writes; empty without one.
  Timestamp replicated_at{};  ///< Time of it.
  /// The result of this folder's last trial of the store; empty if it never tried.
  std::vector<StoreAbility> abilities{};
  Timestamp probed_at{};           ///< Time of that.
  std::int64_t clock_ahead_s = 0;  ///< The store's clock less this machine's then, in seconds.
  std::uint32_t lock_days = 0;     ///< Days for which the writer locks objects; 0 without locks.
  /// The time at which the first lock of an object that the state needs ends, as far as it is
  /// known. An object without a known lock counts as one whose lock ended in 1970.
  Timestamp locks_end{};
};
/// Returns the state of the folder as the disk has it; nullopt for a repository that is in no
/// object store. Makes no request.
/// Errors: those of reading the folder.
[[nodiscard]] Result<std::optional<ReplicationInfo>> replication_info(const std::string& folder,
                                                                      bool trust_owner = false);

/// Returns whether an open repository has met another folder that writes to its object store.
/// Nothing more of it is replicated then: its versions and open versions stay in its folder. Makes
/// no request. Thread-safe.
[[nodiscard]] bool is_fenced(Repository& repository);
/// Returns the sentence that tells people how a machine whose folder is fenced writes again to the
/// repository at `place`. It has no full stop.
[[nodiscard]] std::string how_to_write_again(const std::string& place);

/// The folder that writes to a repository in an object store, as it says itself. It is advice for
/// people.
struct StoreLease {
  std::string host{};
  std::string user{};
  std::string folder{};  ///< The repository's folder on that host.
  Timestamp since{};     ///< The time of its first replicated state, by that host's clock.
};
/// Returns the lease that the repository's folder has seen last; nullopt if there is none, and for
/// a repository that is in no object store. Makes no request.
/// Errors: those of reading the folder.
[[nodiscard]] Result<std::optional<StoreLease>> store_lease(Repository& repository);

/// Requests of one kind to an object store, as stores bill them.
struct StoreRequests {
  std::string kind{};                ///< "put", "get", "list", "remove", "head" or "copy".
  std::uint64_t requests = 0;        ///< Repeated ones included.
  std::uint64_t repeated = 0;        ///< Requests among them that repeat an earlier one.
  std::uint64_t bytes_sent = 0;      ///< Bytes of bodies that were sent.
  std::uint64_t bytes_received = 0;  ///< Bytes of bodies that were received.
};
/// The use of an object store by a repository, as its folder knows it.
struct StoreUsage {
  std::string place{};                    ///< s3://BUCKET/PREFIX.
  std::uint64_t objects = 0;              ///< Objects that the newest replicated state needs.
  std::uint64_t bytes = 0;                ///< Their bytes.
  std::uint64_t dropped_objects = 0;      ///< Objects that wait for their removal.
  std::vector<StoreRequests> requests{};  ///< Requests of all processes that ended.
};
/// Returns it; nullopt for a repository that is in no object store. Makes no request. No part of
/// this process may have the repository open.
/// Errors: those of reading the folder.
[[nodiscard]] Result<std::optional<StoreUsage>> store_usage(const std::string& folder,
                                                            bool trust_owner = false);

/// An object that is not as the newest replicated state needs it.
struct StoreDamage {
  std::string object{};
  std::string what{};
};
/// The result of comparing a repository with a list of its object store.
struct StoreCheck {
  std::string place{};  ///< s3://BUCKET/PREFIX; empty for a repository that is in no object store.
  std::uint64_t objects = 0;          ///< Objects of the repository.
  std::uint64_t bytes = 0;            ///< Their bytes.
  std::uint64_t foreign_objects = 0;  ///< Objects among them that no state needs, older than a day.
  std::uint64_t foreign_bytes = 0;
  std::uint64_t objects_read = 0;  ///< Objects that were read as a whole.
  std::uint64_t bytes_read = 0;    ///< Their bytes.
  std::vector<StoreDamage> damages{};
  std::vector<std::string> notes{};  ///< Changes of the store since the last check, and advice.
};
/// Compares a list of the object store with the newest state that the folder knows: objects that
/// are missing, or have another length. In a writer's folder, also tries the abilities of the
/// store, and asks for the lock of each object if the repository locks them. With `reads_objects`,
/// reads all of them, and compares them with their checksums: the folder's own copies prove nothing
/// about the store's. No part of this process may have the repository open.
/// Errors: those of the store, and of reading the folder.
[[nodiscard]] Result<StoreCheck> check_store(const std::string& folder, const OpenOptions& options,
                                             bool reads_objects = false);

/// The work of one reclaim_store().
struct ReclaimReport {
  std::uint64_t removed_objects = 0;  ///< Objects that no head has named for long enough.
  std::uint64_t removed_heads = 0;    ///< Heads that are too old to matter.
  std::uint64_t noted_objects =
      0;  ///< Objects that a later call removes, unless a head names them.
};
/// Removes what a repository in an object store does not need, for a machine whose key may remove
/// objects while the keys of the writers may not. `folder` is an attached folder, in which the call
/// notes the objects that no head names. A later call removes those that were noted at least
/// `wait_seconds` before and that no newer head names. Writers may continue meanwhile.
/// Errors: kInvalid unless the folder is attached; kLocked while another process uses the folder's
/// state; kNotPermitted if the key may not remove objects; those of the store and the disk.
[[nodiscard]] Result<ReclaimReport> reclaim_store(const std::string& folder,
                                                  const OpenOptions& options,
                                                  std::int64_t wait_seconds);

/// Names a version by its numbers.
struct VersionId {
  SeriesId series{};
  VersionNumber number{};
};
/// Returns the versions that the object store lacks, or has in another state; open ones too. Empty
/// for a repository that is in no object store. Makes no request. No part of this process may have
/// the repository open.
/// Errors: those of reading the folder.
[[nodiscard]] Result<std::vector<VersionId>> unreplicated_versions(const std::string& folder,
                                                                   bool trust_owner = false);

/// Changes in a writer's folder that its object store lacks, besides new versions.
struct UnreplicatedChanges {
  bool keys = false;      ///< The key slots: in the store, removed keys are still good.
  bool settings = false;  ///< Settings of the repository, and locks of versions.
  std::uint64_t deleted_versions = 0;  ///< Versions that the store still has.

  [[nodiscard]] bool any() const { return keys || settings || deleted_versions != 0; }
};
/// Returns them; none for a repository that is in no object store, and before the first replicated
/// state. Makes no request. No part of this process may have the repository open.
/// Errors: those of reading the folder.
[[nodiscard]] Result<UnreplicatedChanges> unreplicated_changes(const std::string& folder,
                                                               bool trust_owner = false);

/// Returns whether the object store has a sealed version as this folder has it. Makes no request.
/// Another process may write meanwhile, but this one may not have the repository open.
/// Errors: those of reading the folder; kNotFound without the version.
[[nodiscard]] Result<bool> is_replicated(const std::string& folder, SeriesId series,
                                         VersionNumber number, bool trust_owner = false);

}  // namespace varve
