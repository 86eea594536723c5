// SPDX-License-Identifier: Apache-2.0
// A simple operation: one request, one function of RepositoryControl, one answer.
#pragma once

#include <string_view>
#include <type_traits>
#include <utility>

#include "control/requests.h"

namespace varve::control {

/// A row of the table in control/repository_control.h. `In` is the type of a member of Request, or
/// nullptr_t for a function without arguments. `Out` is the type of a member of Reply, or nullptr_t
/// for a function without a result.
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

template <typename Member>
inline constexpr bool kIsMember = !std::is_null_pointer_v<std::remove_cvref_t<Member>>;

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
