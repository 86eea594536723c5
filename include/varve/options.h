// SPDX-License-Identifier: Apache-2.0
// Options of a repository: fixed at init, chosen at each open, or given to a seal or a deletion.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "varve/arrange.h"
#include "varve/encryption.h"
#include "varve/object_store.h"
#include "varve/placement.h"
#include "varve/pool_index.h"
#include "varve/rewrite.h"
#include "varve/types.h"

namespace varve {

enum class Codec : std::uint8_t { kNone = 0, kZstd = 1 };

/// Parameters fixed when the repository is created. The superblock stores them.
struct RepositoryParameters {
  std::string chunker = "gear16";  ///< Id. A keyed chunker only in an encrypted repository.
  std::uint32_t chunk_bytes_min = 2048;
  std::uint32_t chunk_bytes_avg = 8192;  ///< Power of two, 4096 to 16384.
  std::uint32_t chunk_bytes_max = 65536;
  Codec codec = Codec::kZstd;
  int zstd_level = 1;  ///< 1 to 19; only for kZstd.
  /// Default for new series, until Repository::change_series_defaults().
  Placement placement = Placement::kLineage;
};

/// Settings of a series.
struct SeriesSettings {
  Placement placement = Placement::kLineage;
  Rewrite rewrite = Rewrite::kNone;  ///< Has an effect only with a placement that uses the pool.

  friend bool operator==(const SeriesSettings&, const SeriesSettings&) = default;
};

/// Choices for a new series, or changes of the settings of a series. A member without a value
/// stands for the default of new series, or for the present setting.
struct SeriesOptions {
  std::optional<Placement> placement{};
  std::optional<Rewrite> rewrite{};
};

class Repository;

/// Options chosen each time a process opens the repository.
struct OpenOptions {
  bool read_only = false;
  std::uint64_t cache_bytes = 64ULL << 20;  ///< Memory budget of the restore engine.
  /// Memory budget of the index of each open version, at least 1 MiB.
  std::uint64_t index_bytes = 256ULL << 20;
  std::string engine = "alacc";      ///< Restore engine.
  std::uint32_t ingest_threads = 0;  ///< Fingerprint workers; 0 = a worker per core, at most 8.
  std::uint32_t checkpoint_interval_ms = 4000;
  /// Idle time in seconds after which opening or cloning a version may seal the series' open
  /// version. nullopt: opening or cloning never seals the open version.
  std::optional<std::uint32_t> autoseal_s = 60;
  /// Arrange in the background after each seal, at idle priority.
  bool arrange = true;
  /// Limit on the bytes per second that background arranging reads and writes; 0 = no limit;
  /// nullopt = the limit in UpkeepSettings. Does not apply while a seal waits for arranging.
  std::optional<std::uint64_t> arrange_bytes_per_second;
  /// Check all pages of a large catalog at open, for damage that would end the process. Varve
  /// always checks all pages of a small catalog.
  bool probe_catalog = false;
  /// Use a repository even if a user other than the caller or root owns a part of the repository or
  /// may write to a part. Such users can then alter the stored data. Varve still refuses their
  /// links in the folder.
  bool trust_owner = false;
  /// The key of an encrypted repository. Called after the lock of the writer is taken.
  KeySource key{};
  /// Refuse a plain repository: with write access to the storage, an attacker could swap an
  /// encrypted repository for a plain one, to get new data in the clear.
  bool encrypted_only = false;
  /// The local folder with the highest sequence number seen of each encrypted repository; "" = no
  /// records. Varve makes the folder.
  std::string memory_folder{};
  /// Use an encrypted repository older than the recorded sequence number, and record its present
  /// sequence number.
  bool accept_older = false;
  /// Access to and use of the object store, for a repository in an object store.
  StoreUse store{};
  /// Announces reads (StoreLink::will_read_once(), VersionReader::will_read_all()), so that the
  /// reads begin before the opening ends. The opening of an attached folder calls `announce` once,
  /// while asking the store for a newer head, which takes round trips. The argument is the
  /// repository in the folder's present state, perhaps not the repository that open() returns. So
  /// `announce` must not keep references to the argument, and must decide nothing else. The opening
  /// may request the key twice then. Other openings do not call `announce`.
  std::function<void(Repository&)> announce{};
};

/// Initial settings of a new repository. Unlike the parameters, settings can change later. A member
/// without a value stands for the default.
struct FirstSettings {
  std::optional<SeriesSettings> new_series{};  ///< Settings of new series.
  std::optional<ArrangeSettings> arrange{};
  PoolIndexChoice pool_index{};
};

/// Options for creating a repository.
struct CreateOptions {
  bool trust_owner = false;                ///< As in OpenOptions.
  std::optional<Encryption> encryption{};  ///< nullopt: a plain repository.
  FirstSettings settings{};
  StoreAccess store_access{};  ///< As StoreUse::access; only for create_in_store().
};

/// Whether a seal leaves an open version beside the sealed one.
enum class SealMode : std::uint8_t {
  kEnd,   ///< Only the sealed version.
  kKeep,  ///< Also an open version with the old name, a clone of the sealed version.
};

/// How a seal treats files of the version that are open for writing.
enum class SealWriters : std::uint8_t {
  kRefuse,  ///< The seal fails with kBusy.
  kCutOff,  ///< The seal includes the bytes written so far; later writes fail with kReadOnly.
};

/// Names a version of a repository.
struct VersionKey {
  SeriesId series{};
  VersionNumber number{};
  auto operator<=>(const VersionKey&) const = default;
};

/// How a deletion treats held versions.
struct DeletionOptions {
  /// Deletes the versions held by nothing and lists held versions in DeletionForecast::held.
  /// Otherwise one held version makes the whole call fail and nothing is deleted.
  bool skip_held = false;
  /// Deletes versions with open files too; their readers then get errors. Still holds locked
  /// versions and the bases of open versions.
  bool force = false;
  /// Treats a lock as ended once the clock says so, even if the clock has jumped.
  bool force_clock = false;
  /// Versions of other series that the caller will delete first. Only for a forecast: pool data
  /// shared by `deleted_before` and the deleted versions is freed with the deleted versions.
  std::vector<VersionKey> deleted_before{};
};

}  // namespace varve
