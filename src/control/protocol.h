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
#include "varve/arrange.h"
#include "varve/repository.h"
#include "varve/result.h"
#include "varve/retention.h"
#include "varve/types.h"

namespace varve::control {

enum class Operation {
  kHello,
  kPing,
  kSeal,
  kStats,
  kOpen,
  kClone,
  kDelete,
  kLock,
  kArrange,
  kArrangeSettings,
  kSync,  ///< Make all open versions durable; the reply has no members of its own.
  kOpenVersions
};

struct SealRequest {
  std::string version;   ///< SERIES/VERSION.
  std::string new_name;  ///< "" keeps the name, without ".partial".
  bool wait = false;     ///< Wait until no program writes to the version.
  /// With `wait`: the longest time to wait, in seconds; 0 for no limit.
  std::uint64_t wait_seconds = 0;
  bool force = false;  ///< Seal despite files open for writing; with `wait`, after the wait.
  bool keep = false;   ///< Leave a clone open under the old name.
};

/// A request for an empty version (`source` is "") or a clone. For a clone, the daemon ignores
/// mode, uid and gid of the root.
struct OpenRequest {
  /// SERIES/VERSION to create. For an empty version, also creates the series if needed.
  std::string version;
  std::string source;  ///< SERIES/VERSION, or SERIES/latest.
  std::uint32_t mode = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
};

/// A deletion. It names versions by number, because another version may have taken a name since the
/// command looked it up.
struct DeleteRequest {
  std::string series;
  std::vector<VersionNumber> versions;
  bool forecast_only = false;  ///< Delete nothing.
  bool discard = false;        ///< Drop open versions instead.
  DeletionOptions options{};
};

struct LockRequest {
  std::string series;
  VersionNumber version{};
  Timestamp until;
};

struct ArrangeRequest {
  std::string series;
  std::uint64_t bytes_per_second = 0;  ///< See ArrangeOptions::bytes_per_second.
};

/// The result of a seal: the sealed version and, with SealRequest::keep, the open version that
/// continues it.
struct SealReply {
  VersionInfo sealed;
  std::optional<VersionInfo> next;
  std::string warning;  ///< See SealOutcome::warning.
};

struct Request {
  Operation operation = Operation::kPing;
  std::uint32_t protocol = kProtocol;  ///< 1 if the request has no protocol number.
  SealRequest seal;                    ///< Only for kSeal.
  OpenRequest open;                    ///< Only for kOpen and kClone.
  DeleteRequest removal{};
  LockRequest lock{};
  ArrangeRequest arrange{};
  std::string series;  ///< Only for kOpenVersions: the name of the series.
  /// Only for kArrangeSettings: settings to store first.
  std::optional<ArrangeSettings> settings{};
};

/// An error, or the result of the operation. The daemon may send interim replies before the last
/// one: replies with only `working` and, for kArrange, replies with only `progress`.
struct Reply {
  std::optional<Error> error;
  bool working = false;                ///< The operation continues; another reply follows.
  std::optional<Identity> identity{};  ///< Only for kHello.
  std::optional<VersionInfo> version;  ///< Only for kSeal, kOpen and kClone.
  std::optional<VersionInfo> next;     ///< Only for kSeal with `keep`.
  std::string warning;                 ///< Only for kSeal; usually empty.
  std::optional<std::vector<VersionInfo>> versions;  ///< Only for kOpenVersions.
  std::optional<RepositoryStats> stats;              ///< Only for kStats.
  std::optional<DeletionForecast> forecast;          ///< Only for kDelete.
  std::optional<ArrangeProgress> progress;
  std::optional<ArrangeReport> arranged;    ///< Only for the last reply to kArrange.
  std::optional<ArrangeSettings> settings;  ///< Only for kArrangeSettings: the current settings.
};

[[nodiscard]] std::string encode(const Request& request);
[[nodiscard]] std::string encode(const Reply& reply);
/// Decodes a request or a reply. An error inside a reply is part of the value.
/// Errors: kInvalid if the line is not a request (or reply) of this protocol; kUnsupported for a
/// request of another protocol, except kHello.
[[nodiscard]] Result<Request> decode_request(std::string_view line);
[[nodiscard]] Result<Reply> decode_reply(std::string_view line);

}  // namespace varve::control
