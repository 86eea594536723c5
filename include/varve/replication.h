// SPDX-License-Identifier: Apache-2.0
// Repositories whose sealed data is in an object store (s3://BUCKET/PREFIX).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "varve/check.h"
#include "varve/object_lock.h"
#include "varve/object_store.h"
#include "varve/options.h"
#include "varve/result.h"
#include "varve/store_link.h"
#include "varve/types.h"

namespace varve {

/// ArrangeSettings::dead_permille of a new repository in an object store, unless the caller chooses
/// settings of the arranger. A high threshold saves uploads: the arranger uploads all rewritten
/// data.
inline constexpr std::uint32_t kStoreDeadPermille = 200;

/// Creates a repository in an empty object store, and its folder on the caller's machine, the only
/// folder with write access. The folder caches up to StorePlace::cache_bytes of the data. An
/// interrupted call can be repeated.
/// With a `lock`, all objects get object locks; see set_upkeep_settings() for a change.
/// Errors: kExists if the place or the folder has a repository; kUnsupported if the store does not
/// honour conditional requests, or has no object locks; those of Repository::create() and the
/// store.
[[nodiscard]] Result<void> create_in_store(const StorePlace& place, const std::string& folder,
                                           const RepositoryParameters& parameters,
                                           const CreateOptions& options,
                                           const ObjectLock& lock = {});

/// The role of an attached folder.
enum class AttachRole : std::uint8_t {
  kReads,   ///< Reads, beside the writer's folder.
  kWrites,  ///< Takes over: becomes the only folder with write access.
};

/// Attaches a folder to a repository in an object store. The folder gets the catalog of the newest
/// replicated state, and reads file contents from the store on demand. An interrupted call can be
/// repeated. A call for an attached folder with the same role succeeds and changes nothing. Opening
/// a read-only folder brings the folder up to date.
/// A folder that takes over creates the next head. The former writer's folder finds the new head,
/// uploads nothing more, and keeps its unreplicated versions. Open versions are not transferred.
/// An attached folder takes over in place, with its settings: until the end it stays attached.
/// Errors: kNoRepository; kNotEmpty if the folder has foreign files; kExists if the folder belongs
/// to another repository, or writes already and is to read; kWrongKey; kLocked if another folder
/// wrote meanwhile, or has taken over from the given folder; those of the store and the disk.
[[nodiscard]] Result<void> attach_to_store(const StorePlace& place, const std::string& folder,
                                           const OpenOptions& options,
                                           AttachRole role = AttachRole::kReads);

/// The objects that rebuild_from_store() reads.
struct StoreSurvey {
  std::uint64_t objects = 0;     ///< Listed objects, without heads and catalog objects.
  std::uint64_t bytes = 0;       ///< Bytes of these objects.
  std::uint64_t requests = 0;    ///< Estimated number of requests; small containers need fewer.
  std::uint64_t bytes_read = 0;  ///< Bytes of the small files, which are read as a whole.
};
/// Counts the objects for a rebuild by lists alone.
/// Errors: kInvalid if the newest state is whole; kNoRepository; kCorrupt without key slots; those
/// of the store.
[[nodiscard]] Result<StoreSurvey> survey_store(const StorePlace& place, const OpenOptions& options);

/// The result of rebuild_from_store().
struct StoreRebuild {
  std::uint64_t versions = 0;           ///< Sealed versions in the rebuilt catalog.
  std::vector<std::string> problems{};  ///< Lost versions and data, and objects left out.
  std::vector<std::string> notes{};     ///< Further notes for the user.
};
/// Makes a folder whose catalog is rebuilt from the manifests, the labels and the headers of the
/// containers in the store, because the store has lost the catalog. The folder must be empty or
/// absent. With kReads, the folder shows the rebuilt state, and follows no later state. With
/// kWrites, the folder takes over as attach_to_store() does, and needs OpenOptions::accept_older.
/// Errors: as survey_store() and attach_to_store(); kExists after an interrupted call.
[[nodiscard]] Result<StoreRebuild> rebuild_from_store(const StorePlace& place,
                                                      const std::string& folder,
                                                      const OpenOptions& options, AttachRole role);

/// A folder of the local machine, belonging to a place in an object store.
struct StoreFolder {
  std::string folder{};
  StorePlace place{};
  bool reads_only = false;  ///< The folder was attached.
};
/// Returns whether a text names an object store: whether it begins as the place of a known kind of
/// store, such as s3://. The rest may be wrong.
[[nodiscard]] bool is_store_place(std::string_view text);
/// Returns the normal form of a place: "s3://BUCKET/PREFIX" without a last slash.
/// Errors: kInvalid with advice.
[[nodiscard]] Result<std::string> normalized_place(std::string_view text);

/// Records on the local machine the place of a folder. `memory_folder` is
/// OpenOptions::memory_folder. Logs errors: commands then need the name of the folder.
void remember_store_folder(const std::string& memory_folder, const std::string& place,
                           const std::string& folder);
/// Returns the recorded folders of a place, writers first. Omits folders that no longer belong to
/// the place. `trusts` decides about OpenOptions::trust_owner.
[[nodiscard]] std::vector<StoreFolder> known_store_folders(
    const std::string& memory_folder, std::string_view place,
    const std::function<bool(const std::string& folder)>& trusts);
/// Returns the folders recorded for a place on the local machine, including missing folders.
[[nodiscard]] std::vector<std::string> remembered_folders(const std::string& memory_folder,
                                                          std::string_view place);
/// Returns all places recorded on the local machine.
[[nodiscard]] std::vector<std::string> known_places(const std::string& memory_folder);

/// An ability of a store, for example {"conditional requests", "honoured"}.
struct StoreAbility {
  std::string name{};
  std::string value{};
};
/// A failed replication by the process that writes to a folder. The process tries again with the
/// next seal, and minutes later.
struct ReplicationFailure {
  ErrorCode code{};  ///< Not kUnavailable.
  std::string message{};
  Timestamp at{};  ///< The time of the last attempt.
};
/// The state of a folder of a repository in an object store.
struct ReplicationInfo {
  std::string place{};      ///< s3://BUCKET/PREFIX.
  bool reads_only = false;  ///< The folder was attached.
  std::uint64_t head = 0;   ///< Number of the newest replicated state; 0 before the first state.
  /// Message about another writer's folder; empty without another writer.
  std::string fenced{};
  std::optional<ReplicationFailure> failure{};  ///< nullopt after a successful attempt.
  Timestamp replicated_at{};                    ///< Time of the newest replicated state.
  /// The result of the folder's last trial of the store; empty before the first trial.
  std::vector<StoreAbility> abilities{};
  Timestamp probed_at{};  ///< Time of the last trial.
  /// The store's clock minus the local clock, at the trial, in seconds.
  std::int64_t clock_ahead_s = 0;
  std::uint32_t lock_days = 0;  ///< Days of the writer's object locks; 0 without locks.
  /// The earliest known end of an object lock, over all objects that the state needs. An object
  /// without a known object lock counts as an object whose lock ended in 1970.
  Timestamp locks_end{};
  /// Results of the last calls of RemoteFolder::check(): kData with `reads_objects`, otherwise
  /// kStructure.
  std::vector<EarlierCheck> checks{};
};
/// Returns a sentence for people: how the machine of a fenced folder writes again to the repository
/// at `place`. The sentence has no full stop.
[[nodiscard]] std::string how_to_write_again(const std::string& place);

/// Requests of one kind to an object store, by the kinds of a store's bill.
struct StoreRequests {
  std::string kind{};                ///< "put", "get", "list", "remove", "head" or "copy".
  std::uint64_t requests = 0;        ///< All requests, including repeated requests.
  std::uint64_t repeated = 0;        ///< Requests that repeat an earlier request.
  std::uint64_t bytes_sent = 0;      ///< Bytes of sent bodies.
  std::uint64_t bytes_received = 0;  ///< Bytes of received bodies.
};
/// A repository's use of an object store, as recorded in the folder.
struct StoreUsage {
  std::string place{};                    ///< s3://BUCKET/PREFIX.
  std::uint64_t objects = 0;              ///< Objects needed by the newest replicated state.
  std::uint64_t bytes = 0;                ///< Bytes of `objects`.
  std::uint64_t dropped_objects = 0;      ///< Objects waiting for removal.
  std::vector<StoreRequests> requests{};  ///< Requests of all ended processes.
};
/// A missing or differing object of the newest replicated state.
struct StoreDamage {
  std::string object{};
  std::string what{};
};
/// The result of comparing a repository with a listing of the object store.
struct StoreCheck {
  std::string place{};        ///< s3://BUCKET/PREFIX; empty for a repository outside object stores.
  std::uint64_t objects = 0;  ///< Objects of the repository.
  std::uint64_t bytes = 0;    ///< Bytes of `objects`.
  /// Objects among `objects` needed by no state, older than a day.
  std::uint64_t foreign_objects = 0;
  std::uint64_t foreign_bytes = 0;
  std::uint64_t objects_read = 0;  ///< Objects read as a whole.
  std::uint64_t bytes_read = 0;    ///< Bytes of `objects_read`.
  std::vector<StoreDamage> damages{};
  std::vector<std::string> notes{};  ///< Changes of the store since the last check, and advice.
};
/// The work of one call of RemoteFolder::reclaim().
struct ReclaimReport {
  std::uint64_t removed_objects = 0;  ///< Objects named by no head for long enough.
  std::uint64_t removed_heads = 0;    ///< Heads too old to matter.
  /// Objects to be removed by a later call, unless a head names the objects.
  std::uint64_t noted_objects = 0;
};
/// Identifies a version by its numbers.
struct VersionId {
  SeriesId series{};
  VersionNumber number{};
};
/// Changes in a writer's folder, besides new versions, not yet in the object store.
struct UnreplicatedChanges {
  bool keys = false;      ///< The key slots: in the store, removed keys are still good.
  bool settings = false;  ///< Settings of the repository, and locks of versions.
  std::uint64_t deleted_versions = 0;  ///< Versions that the store still has.

  [[nodiscard]] bool any() const { return keys || settings || deleted_versions != 0; }
};
}  // namespace varve
