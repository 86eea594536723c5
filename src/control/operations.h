// SPDX-License-Identifier: Apache-2.0
// The table of the simple operations: one request, one function of RepositoryControl, one answer.
// The names on the socket, the daemon's answers and the command's requests all read the table.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "control/protocol.h"
#include "control/repository_control.h"
#include "varve/result.h"

namespace varve::control {

/// A row of the table. `In` is the type of a member of Request, or nullptr_t for a function without
/// arguments. `Out` is the type of a member of Reply, or nullptr_t for a function without a result.
template <typename In, typename Out, typename Run>
struct SimpleOperation {
  Operation operation;
  std::string_view name;  ///< Value of `op` in the request's JSON.
  In in;
  Out out;
  Run run;             ///< The function of RepositoryControl.
  const char* newer;   ///< Name of the request for a daemon of an older Varve; "" if none is older.
  const char* answer;  ///< Name of the result, for an answer without the result.
};
template <typename In, typename Out, typename Run>
SimpleOperation(Operation, std::string_view, In, Out, Run, const char*, const char*)
    -> SimpleOperation<In, Out, Run>;

inline constexpr std::tuple kSimpleOperations{
    SimpleOperation{Operation::kOpen, "open", &Request::open, &Reply::version,
                    &RepositoryControl::open, "", "version"},
    SimpleOperation{Operation::kClone, "clone", &Request::open, &Reply::version,
                    &RepositoryControl::clone, "", "version"},
    SimpleOperation{Operation::kDelete, "delete", &Request::removal, &Reply::forecast,
                    &RepositoryControl::remove, "", "sizes"},
    SimpleOperation{Operation::kLock, "lock", &Request::lock, nullptr, &RepositoryControl::lock, "",
                    ""},
    SimpleOperation{Operation::kArrangeSettings, "arrange_settings", &Request::settings,
                    &Reply::settings, &RepositoryControl::arrange_settings, "", "settings"},
    SimpleOperation{Operation::kSync, "sync", nullptr, nullptr, &RepositoryControl::sync, "", ""},
    SimpleOperation{Operation::kOpenVersions, "open_versions", &Request::series, &Reply::versions,
                    &RepositoryControl::open_versions, "", "versions"},
    SimpleOperation{Operation::kMetrics, "metrics", nullptr, &Reply::metrics,
                    &RepositoryControl::metrics, "metrics", "metrics"},
    SimpleOperation{Operation::kSeriesSettings, "series_settings", &Request::series_settings,
                    &Reply::series_settings, &RepositoryControl::series_settings,
                    "settings of series", "settings"},
    SimpleOperation{Operation::kPoolIndex, "pool_index", &Request::pool_index, &Reply::pool_index,
                    &RepositoryControl::pool_index, "the index of the pool", "index of the pool"},
    SimpleOperation{Operation::kUpkeep, "upkeep", &Request::upkeep, &Reply::upkeep,
                    &RepositoryControl::upkeep, "the defaults of arranging and pruning",
                    "defaults"},
    SimpleOperation{Operation::kClaim, "claim", &Request::claim, nullptr, &RepositoryControl::claim,
                    "claimed times", ""},
    SimpleOperation{Operation::kRename, "rename", &Request::rename, nullptr,
                    &RepositoryControl::rename, "command to rename versions and series", ""},
    SimpleOperation{Operation::kPoolStreams, "pool_streams", nullptr, &Reply::streams,
                    &RepositoryControl::pool_streams, "the streams of the pool's index", "streams"},
    SimpleOperation{Operation::kKeys, "keys", &Request::keys, nullptr,
                    &RepositoryControl::adopt_keys, "way to change keys", ""},
    SimpleOperation{Operation::kKnownDamage, "known_damage", &Request::damage, &Reply::damage,
                    &RepositoryControl::known_damage, "quarantine of damaged chunks", "damage"},
};

template <typename Member>
inline constexpr bool kIsMember = !std::is_null_pointer_v<std::remove_cvref_t<Member>>;

/// Returns the row of an operation.
template <Operation kOperation, std::size_t kAt = 0>
constexpr const auto& simple_operation() {
  if constexpr (std::get<kAt>(kSimpleOperations).operation == kOperation) {
    return std::get<kAt>(kSimpleOperations);
  } else {
    return simple_operation<kOperation, kAt + 1>();
  }
}

/// Calls `visit` with each row.
template <typename Visit>
void for_each_operation(const Visit& visit) {
  std::apply([&visit](const auto&... rows) { (visit(rows), ...); }, kSimpleOperations);
}

/// Calls `run` with the row's part of a request. Returns the reply with the result or the error.
template <typename Row, typename Run>
[[nodiscard]] Reply answer_simple(const Row& row, const Request& request, const Run& run) {
  auto result = [&] {
    if constexpr (kIsMember<decltype(row.in)>) {
      return run(request.*row.in);
    } else {
      return run();
    }
  }();
  Reply reply;
  if (!result) {
    reply.error = std::move(result).error();
  } else if constexpr (kIsMember<decltype(row.out)>) {
    reply.*row.out = *std::move(result);
  }
  return reply;
}

}  // namespace varve::control
