// SPDX-License-Identifier: Apache-2.0
// The messages between a command and the daemon that holds the repository. Each message is one JSON
// object on a line. The command sends a request, the daemon sends a reply. Both name their
// protocol.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/identity.h"
#include "control/requests.h"
#include "varve/arrange.h"
#include "varve/metrics.h"
#include "varve/repository.h"
#include "varve/result.h"
#include "varve/retention.h"
#include "varve/types.h"

namespace varve::control {

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

/// An error, or the result of the operation. The daemon may send interim replies before the last
/// one: replies with only `working`, with only `progress` for kArrange, and with only `transfer`
/// for kStore and kStoreStream. The last interim reply to kStoreStream has only `all_read`.
struct Reply {
  std::optional<Error> error;
  bool working = false;                ///< The operation continues; another reply follows.
  std::optional<Identity> identity{};  ///< Only for kHello.
  std::optional<VersionInfo> version;  ///< Only for kSeal, kOpen and kClone.
  std::optional<VersionInfo> next;     ///< Only for kSeal with `keep`.
  std::string warning;                 ///< Only for kSeal; usually empty.
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
};

[[nodiscard]] std::string encode(const Request& request);
[[nodiscard]] std::string encode(const Reply& reply);
/// Decodes a request or a reply. An error inside a reply is part of the value.
/// Errors: kInvalid if the line is not a request (or reply) of this protocol; kUnsupported for a
/// request of another protocol, except kHello.
[[nodiscard]] Result<Request> decode_request(std::string_view line);
[[nodiscard]] Result<Reply> decode_reply(std::string_view line);

}  // namespace varve::control
