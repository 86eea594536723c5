// SPDX-License-Identifier: Apache-2.0
// The requests that change a repository, the results, and the messages to a daemon with these.
// Requests name versions and series, because a daemon may carry out the request of a command.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/unique_fd.h"
#include "control/field.h"
#include "control/identity.h"
#include "varve/arrange.h"
#include "varve/backup.h"
#include "varve/check.h"
#include "varve/metrics.h"
#include "varve/options.h"
#include "varve/pool_index.h"
#include "varve/result.h"
#include "varve/retention.h"
#include "varve/types.h"
#include "varve/upkeep.h"

namespace varve::control {

/// Maximum wait for writers in a request: a hundred years, in seconds.
inline constexpr std::uint64_t kSealWaitSecondsMax = 100ULL * 365 * 24 * 60 * 60;

/// A request to seal an open version.
struct SealRequest {
  std::string version;     ///< SERIES/VERSION.
  std::string new_name{};  ///< "" keeps the name, without ".partial".
  bool wait = false;       ///< Wait until no program writes to the version.
  /// With `wait`: the longest time to wait, in seconds, up to kSealWaitSecondsMax; 0 for no limit.
  std::uint64_t wait_seconds = 0;
  bool force = false;  ///< Seal despite files open for writing; with `wait`, after the wait.
  bool keep = false;   ///< Leave a clone open under the old name.

  static constexpr auto fields() {
    return std::tuple{Field{"version", &SealRequest::version},
                      Field{"new_name", &SealRequest::new_name, Presence::kMayLack},
                      Field{"wait", &SealRequest::wait, Presence::kMayLack},
                      Field{"wait_seconds", &SealRequest::wait_seconds, Presence::kMayLack},
                      Field{"force", &SealRequest::force, Presence::kMayLack},
                      Field{"keep", &SealRequest::keep, Presence::kMayLack}};
  }
};

/// A request for an empty version (`source` is "") or a clone. For a clone, the daemon ignores
/// mode, uid and gid of the root.
struct OpenRequest {
  /// SERIES/VERSION to create. For an empty version, also creates the series if needed.
  std::string version;
  std::string source{};  ///< SERIES/VERSION, or SERIES/latest.
  std::uint32_t mode = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;

  static constexpr auto fields() {
    return std::tuple{Field{"version", &OpenRequest::version},
                      Field{"source", &OpenRequest::source}, Field{"mode", &OpenRequest::mode},
                      Field{"uid", &OpenRequest::uid}, Field{"gid", &OpenRequest::gid}};
  }
};

/// A deletion. Versions are given by number, because another version may have taken a name since
/// the command's lookup.
struct DeleteRequest {
  std::string series;
  std::vector<VersionNumber> versions;
  bool forecast_only = false;  ///< Delete nothing.
  bool discard = false;        ///< Drop open versions instead.
  DeletionOptions options{};

  static constexpr auto fields() {
    return std::tuple{Field{"series", &DeleteRequest::series},
                      Field{"versions", &DeleteRequest::versions},
                      Field{"forecast", &DeleteRequest::forecast_only},
                      Field{"discard", &DeleteRequest::discard, Presence::kMayLack},
                      Inlined{&DeleteRequest::options}};
  }
};

/// A lock of a sealed version against deletion until a time.
struct LockRequest {
  std::string series;
  VersionNumber version{};
  Timestamp until;
};

/// A claimed time for an open version; see varve::claim_time().
struct ClaimRequest {
  std::string version;  ///< SERIES/VERSION.
  Timestamp time;

  static constexpr auto fields() {
    return std::tuple{Field{"version", &ClaimRequest::version}, Field{"time", &ClaimRequest::time}};
  }
};

/// A stream to store as a version.
struct StreamSource {
  std::string file{};  ///< See varve::StreamRequest: the resulting file; "" for an archive.
  /// The open stream. A request passes the stream to a daemon as a descriptor.
  std::shared_ptr<const base::UniqueFd> input{};
  /// Called once the whole stream is stored. Returns false if the command is gone: the stream may
  /// then have ended too early, and the version is dropped. Unset in the command's own process.
  std::function<bool()> confirm{};
  /// Called in the command's process before the command confirms the end of the stream. An error
  /// drops the version, and ends the request. May be empty.
  std::function<Result<void>()> check_end{};
};

/// A directory or a stream to store as a version. The storing process reads the files.
struct StoreTask {
  std::string version;                ///< SERIES/VERSION; see varve::StoreRequest.
  std::string directory;              ///< Absolute path without symlinks.
  DirectoryIdentity identity;         ///< The directory, as the command sees it.
  std::uint64_t mount_namespace = 0;  ///< Inode number of the command's mount namespace.
  std::uint32_t user = 0;             ///< User of the command.
  /// The next five members: see varve::StoreOptions.
  std::vector<DirectoryIdentity> without_entries{};
  std::vector<std::string> excludes{};
  std::optional<std::vector<std::string>> only{};
  bool without_caches = false;
  bool one_file_system = false;
  bool seals = false;
  bool read_all = false;
  /// See StoreRequest::guard, and StreamRequest::refuses_empty for a stream.
  bool guard = false;
  std::optional<Timestamp> time{};  ///< Claimed time.
  /// The stream, in place of a directory. Only `version`, `seals`, `guard` and `time` apply then.
  std::optional<StreamSource> stream{};
};

/// The result of a store.
struct StoreTaskReply {
  VersionInfo version;
  TransferReport report;
  std::vector<std::string> left_out{};  ///< Directories stored without entries.
  /// Directories stored without entries because of `one_file_system`.
  std::vector<std::string> other_devices{};

  static constexpr auto fields() {
    using S = StoreTaskReply;
    return std::tuple{Field{"version", &S::version}, Inlined{&S::report},
                      Field{"left_out", &S::left_out, Presence::kMayLack},
                      Field{"other_devices", &S::other_devices, Presence::kMayLack}};
  }
};

/// A new name for a sealed version or a series.
struct RenameRequest {
  std::string name;      ///< SERIES or SERIES/VERSION.
  std::string new_name;  ///< Without the series.

  static constexpr auto fields() {
    return std::tuple{Field{"name", &RenameRequest::name},
                      Field{"new_name", &RenameRequest::new_name}};
  }
};

/// A request to arrange one series.
struct ArrangeRequest {
  std::string series;
  std::uint64_t bytes_per_second = 0;  ///< See ArrangeOptions::bytes_per_second.
  bool compare_all_new = false;        ///< See PostPassOptions::any_new.
  bool every_duplicate = false;        ///< See PostPassOptions::everything.

  static constexpr auto fields() {
    return std::tuple{
        Field{"series", &ArrangeRequest::series},
        Field{"bytes_per_second", &ArrangeRequest::bytes_per_second},
        Field{"compare_all_new", &ArrangeRequest::compare_all_new, Presence::kMayLack},
        Field{"every_duplicate", &ArrangeRequest::every_duplicate, Presence::kMayLack}};
  }
};

/// A request for the settings of a series or of new series, and for changes of the settings.
struct SeriesSettingsRequest {
  std::string series{};  ///< "" for the settings of new series.
  SeriesOptions changes{};

  static constexpr auto fields() {
    return std::tuple{Field{"series", &SeriesSettingsRequest::series},
                      Field{"changes", &SeriesSettingsRequest::changes}};
  }
};

/// A request for the index of the pool, and for a change of the index.
struct PoolIndexRequest {
  std::optional<PoolIndexChoice> choice{};

  static constexpr auto fields() {
    return std::tuple{Field{"pool_index", &PoolIndexRequest::choice}};
  }
};

/// A request for the defaults of arranging and pruning, and for a change of the defaults.
struct UpkeepRequest {
  std::optional<UpkeepSettings> settings{};

  static constexpr auto fields() { return std::tuple{Field{"upkeep", &UpkeepRequest::settings}}; }
};

/// New key slots; see Repository::adopt_keys(). The text has no key in the clear.
struct KeysRequest {
  std::string superblock{};

  static constexpr auto fields() {
    return std::tuple{Field{"superblock", &KeysRequest::superblock}};
  }
};

/// A request about chunks known to be damaged.
struct DamageRequest {
  bool settles = false;   ///< See Repository::settle_quarantine().
  std::string version{};  ///< SERIES/VERSION of a sealed version; "" for none.

  static constexpr auto fields() {
    return std::tuple{Field{"settles", &DamageRequest::settles},
                      Field{"version", &DamageRequest::version}};
  }
};

/// The answer to a DamageRequest.
struct DamageReply {
  std::uint64_t changed = 0;  ///< Chunks added to the quarantine or released by the request.
  LostFiles lost{};           ///< Lost files of the version.
};

/// The result of a seal: the sealed version and, with SealRequest::keep, the open version that
/// continues the sealed version.
struct SealReply {
  VersionInfo sealed;
  std::optional<VersionInfo> next;
  std::string warning;  ///< See SealOutcome::warning.
};

/// The operations of a daemon.
enum class Operation {
  kHello,
  kSeal,
  kOpen,
  kClone,
  kDelete,
  kLock,
  kArrange,
  kArrangeSettings,
  kSync,  ///< Make all open versions durable; the reply has no members of its own.
  kOpenVersions,
  kMetrics,
  kSeriesSettings,
  kPoolIndex,
  kUpkeep,
  kClaim,  ///< The reply has no members of its own, nor has that of kRename.
  kRename,
  kPoolStreams,
  kStore,
  kStoreStream,  ///< As kStore. The descriptor of the stream comes with the request's first byte.
  kGoOn,         ///< The answer to a reply with `all_read`, within kStoreStream.
  kKeys,         ///< The reply has no members of its own.
  kKnownDamage
};

/// A message to a daemon.
struct Request {
  Operation operation = Operation::kHello;
  std::uint32_t protocol = kProtocol;  ///< 1 if the request has no protocol number.
  SealRequest seal;                    ///< Only for kSeal.
  OpenRequest open;                    ///< Only for kOpen and kClone.
  DeleteRequest removal{};
  LockRequest lock{};
  ClaimRequest claim{};
  RenameRequest rename{};
  StoreTask store{};
  ArrangeRequest arrange{};
  std::string series;  ///< Only for kOpenVersions: the name of the series.
  /// Only for kArrangeSettings: settings to store first.
  std::optional<ArrangeSettings> settings{};
  SeriesSettingsRequest series_settings{};
  PoolIndexRequest pool_index{};
  UpkeepRequest upkeep{};
  KeysRequest keys{};
  DamageRequest damage{};
};

/// A daemon's answer: an error, or the result of the operation. The daemon may send interim replies
/// before the last one: replies with only `working`, with only `progress` for kArrange, and with
/// only `transfer` for kStore and kStoreStream. The last interim reply to kStoreStream has only
/// `all_read`.
struct Reply {
  std::optional<Error> error;
  bool working = false;                ///< The operation continues; another reply follows.
  std::optional<Identity> identity{};  ///< Only for kHello.
  std::optional<VersionInfo> version;  ///< Only for kSeal, kOpen and kClone.
  std::optional<VersionInfo> next;     ///< Only for kSeal with `keep`.
  std::string warning;                 ///< Only for kSeal; usually empty.
  std::string incomplete{};  ///< Message of RepositoryControl::write_left_files(); usually empty.
  std::optional<std::vector<VersionInfo>> versions;    ///< Only for kOpenVersions.
  std::optional<std::vector<MetricSample>> metrics{};  ///< Only for kMetrics.
  std::optional<DeletionForecast> forecast;            ///< Only for kDelete.
  std::optional<ArrangeProgress> progress;
  std::optional<ArrangeReport> arranged;    ///< Only for the last reply to kArrange.
  std::optional<ArrangeSettings> settings;  ///< Only for kArrangeSettings: the current settings.
  std::optional<SeriesSettings> series_settings{};   ///< Only for kSeriesSettings.
  std::optional<PoolIndexChoice> pool_index{};       ///< Only for kPoolIndex: the present choice.
  std::optional<UpkeepSettings> upkeep{};            ///< Only for kUpkeep: the present settings.
  std::optional<std::vector<PoolStream>> streams{};  ///< Only for kPoolStreams.
  std::optional<TransferProgress> transfer{};
  /// The daemon has stored the whole stream, and ends the version once the client sends kGoOn.
  bool all_read = false;
  std::optional<StoreTaskReply> stored{};  ///< Only for the last reply to these two.
  std::optional<DamageReply> damage{};     ///< Only for kKnownDamage.

  /// The fields of a reply without an error.
  static constexpr auto fields() {
    return std::tuple{Field{"working", &Reply::working, Presence::kUnlessDefault},
                      Field{"identity", &Reply::identity},
                      Field{"version", &Reply::version},
                      Field{"next", &Reply::next},
                      Field{"warning", &Reply::warning, Presence::kUnlessDefault},
                      Field{"incomplete", &Reply::incomplete, Presence::kUnlessDefault},
                      Field{"versions", &Reply::versions},
                      Field{"metrics", &Reply::metrics},
                      Field{"forecast", &Reply::forecast},
                      Field{"progress", &Reply::progress},
                      Field{"arranged", &Reply::arranged},
                      Field{"settings", &Reply::settings},
                      Field{"series_settings", &Reply::series_settings},
                      Field{"pool_index", &Reply::pool_index},
                      Field{"upkeep", &Reply::upkeep},
                      Field{"streams", &Reply::streams},
                      Field{"transfer", &Reply::transfer},
                      Field{"all_read", &Reply::all_read, Presence::kUnlessDefault},
                      Field{"stored", &Reply::stored},
                      Field{"known_damage", &Reply::damage}};
  }
};

}  // namespace varve::control
