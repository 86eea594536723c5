// SPDX-License-Identifier: Apache-2.0
// What a command and the daemon that holds the repository say to each other: one JSON object
// a line, first the request, then the reply.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "varve/repository.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::control {

enum class Operation { kPing, kSeal, kStats, kOpen, kClone };

struct SealRequest {
  std::string version;   ///< SERIES/VERSION.
  std::string new_name;  ///< "" keeps the name, without ".partial".
  bool wait = false;     ///< Wait until nobody writes to it any more.
  bool keep = false;     ///< Leave a clone open under the old name.
};

/// Of a version that starts empty: `source` is "". Of a clone: that of the root is not used.
struct OpenRequest {
  std::string version;  ///< SERIES/VERSION to be made; the series too, if it starts empty.
  std::string source;   ///< SERIES/VERSION, or SERIES/latest.
  std::uint32_t mode = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
};

/// What a seal gave: the sealed version, and the one that goes on.
struct SealReply {
  VersionInfo sealed;
  std::optional<VersionInfo> next;
};

struct Request {
  Operation operation = Operation::kPing;
  SealRequest seal;  ///< Only for kSeal.
  OpenRequest open;  ///< Only for kOpen and kClone.
};

/// Either an error, or what the operation gives.
struct Reply {
  std::optional<Error> error;
  std::optional<VersionInfo> version;    ///< Of kSeal, kOpen and kClone.
  std::optional<VersionInfo> next;       ///< Of kSeal, if one goes on.
  std::optional<RepositoryStats> stats;  ///< Of kStats.
};

[[nodiscard]] std::string encode(const Request& request);
[[nodiscard]] std::string encode(const Reply& reply);
/// kInvalid for what is no request (or reply) of this protocol. A reply's error is a value.
[[nodiscard]] Result<Request> decode_request(std::string_view line);
[[nodiscard]] Result<Reply> decode_reply(std::string_view line);

}  // namespace varve::control
