// SPDX-License-Identifier: Apache-2.0
// What a command and the daemon that holds the repository say to each other: one JSON object
// a line, first the request, then the reply. Both name the protocol that they speak.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/identity.h"
#include "varve/repository.h"
#include "varve/result.h"
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
  bool wait = false;     ///< Wait until no program writes to it any more.
  /// With `wait`: the longest time to wait, in seconds; 0 for no limit.
  std::uint64_t wait_seconds = 0;
  bool force = false;  ///< Seal although files are open for writing; with `wait`, after the wait.
  bool keep = false;   ///< Leave a clone open under the old name.
};

/// Of a version that starts empty: `source` is "". Of a clone: that of the root is not used.
struct OpenRequest {
  std::string version;  ///< SERIES/VERSION to be made; the series too, if it starts empty.
  std::string source;   ///< SERIES/VERSION, or SERIES/latest.
  std::uint32_t mode = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
};

/// Versions go by number: a name may have changed hands since the command looked it up.
struct DeleteRequest {
  std::string series;
  std::vector<VersionNumber> versions;
  bool forecast_only = false;  ///< Delete nothing.
  bool discard = false;        ///< The versions are open ones, to be dropped.
  DeletionOptions options{};
};

struct LockRequest {
  std::string series;
  VersionNumber version{};
  Timestamp until;
};

struct ArrangeRequest {
  std::string series;
  std::uint64_t bytes_per_second = 0;  ///< As ArrangeOptions::bytes_per_second.
};

/// What a seal gave: the sealed version, and the one that goes on.
struct SealReply {
  VersionInfo sealed;
  std::optional<VersionInfo> next;
  std::string warning;  ///< As SealOutcome::warning.
};

struct Request {
  Operation operation = Operation::kPing;
  std::uint32_t protocol = kProtocol;  ///< 1 if the request names none.
  SealRequest seal;                    ///< Only for kSeal.
  OpenRequest open;                    ///< Only for kOpen and kClone.
  DeleteRequest removal{};
  LockRequest lock{};
  ArrangeRequest arrange{};
  std::string series;                         ///< Series name of a kOpenVersions request.
  std::optional<ArrangeSettings> settings{};  ///< Of kArrangeSettings: to be stored first.
};

/// Either an error, or what the operation gives. Before the last reply to a request come any
/// number that have only `working`, and for kArrange others that have only `progress`.
struct Reply {
  std::optional<Error> error;
  bool working = false;                ///< The operation goes on; there is more to come.
  std::optional<Identity> identity{};  ///< Of kHello.
  std::optional<VersionInfo> version;  ///< Of kSeal, kOpen and kClone.
  std::optional<VersionInfo> next;     ///< Of kSeal, if one goes on.
  std::string warning;                 ///< Of kSeal; usually empty.
  std::optional<std::vector<VersionInfo>> versions;  ///< Reply to kOpenVersions.
  std::optional<RepositoryStats> stats;              ///< Of kStats.
  std::optional<DeletionForecast> forecast;          ///< Of kDelete.
  std::optional<ArrangeProgress> progress;
  std::optional<ArrangeReport> arranged;    ///< Of kArrange, at its end.
  std::optional<ArrangeSettings> settings;  ///< Of kArrangeSettings: those that are in force.
};

[[nodiscard]] std::string encode(const Request& request);
[[nodiscard]] std::string encode(const Reply& reply);
/// kInvalid for what is no request (or reply) of this protocol, kUnsupported for a request of
/// another protocol that is not kHello. A reply's error is a value.
[[nodiscard]] Result<Request> decode_request(std::string_view line);
[[nodiscard]] Result<Reply> decode_reply(std::string_view line);

}  // namespace varve::control
