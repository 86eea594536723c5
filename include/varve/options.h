// SPDX-License-Identifier: Apache-2.0
// Options of a repository: those fixed at init, those chosen at each open, and those of a seal or a
// deletion.
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
  std::string chunker = "gear16";  ///< Id. Only an encrypted repository has a keyed one.
  std::uint32_t chunk_bytes_min = 2048;
  std::uint32_t chunk_bytes_avg = 8192;  ///< Power of two, 4096 to 16384.
  std::uint32_t chunk_bytes_max = 65536;
  Codec codec = Codec::kZstd;
  int zstd_level = 1;  ///< 1 to 19; only for kZstd.
  /// Default for new series, until Repository::change_series_defaults() sets another one.
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
  std::uint32_t ingest_threads = 0;  ///< Fingerprint workers; 0 = one per core, at most 8.
  std::uint32_t checkpoint_interval_ms = 4000;
  /// Idle time in seconds after which opening or cloning a version may seal the series' open
  /// version. nullopt: it never seals the open version.
  std::optional<std::uint32_t> autoseal_s = 60;
  /// Arrange in the background after each seal, at idle priority.
  bool arrange = true;
  /// Limit on the bytes per second that background arranging reads and writes; 0 = no limit;
  /// nullopt = that of UpkeepSettings. It does not apply while a seal waits for arranging.
  std::optional<std::uint64_t> arrange_bytes_per_second;
  /// Check all pages of a large catalog at open, for damage that would end this process. Varve
  /// always checks those of a small catalog.
  bool probe_catalog = false;
  /// Use a repository even if another user than the caller or root owns a part of it, or if others
  /// may write to it. Those users can then alter the stored data. Varve still refuses links that
  /// they put into the folder.
  bool trust_owner = false;
  /// The key of an encrypted repository. It is called after the lock is taken.
  KeySource key{};
  /// Refuse a plain repository: a storage that others write could offer one instead of an
  /// encrypted one, to get new data in the clear.
  bool encrypted_only = false;
  /// The folder where this machine remembers the sequence number of each encrypted repository;
  /// "" = it remembers none. Varve makes the folder.
  std::string memory_folder{};
  /// Use an encrypted repository that is older than this machine remembers, and remember its
  /// present sequence number.
  bool accept_older = false;
  /// How to reach and use the object store of a repository that is in one.
  StoreUse store{};
  /// Announces reads (varve/read_once.h, varve/read_ahead.h), so that they begin before the opening
  /// ends. An attached folder has to learn first whether the store has a newer head, which takes
  /// round trips. The opening calls it meanwhile, once, with the repository as the folder has it:
  /// perhaps not the one that it returns. So it must not keep anything of that repository, and must
  /// decide nothing else. Other openings do not call it. The key may be asked for twice then.
  std::function<void(Repository&)> announce{};
};

/// Settings that a new repository has from its first moment. Unlike the parameters, they can change
/// later. A member without a value stands for the default.
struct FirstSettings {
  std::optional<SeriesSettings> new_series{};  ///< Those of new series.
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
  kKeep,  ///< Also an open version with the old name, which starts as a clone of the sealed one.
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
  /// Deletes the versions that nothing holds and lists the others in DeletionForecast::held.
  /// Otherwise one held version makes the whole call fail and nothing is deleted.
  bool skip_held = false;
  /// Deletes versions with open files too; their readers then get errors. Still holds locked
  /// versions and the bases of open versions.
  bool force = false;
  /// Treats a lock as ended once the clock says so, even if the clock has jumped.
  bool force_clock = false;
  /// Versions of other series that the caller will delete first. Only for a forecast: what these
  /// versions and the deleted ones share in the pool is freed with the deleted ones.
  std::vector<VersionKey> deleted_before{};
};

}  // namespace varve
