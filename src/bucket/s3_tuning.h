// SPDX-License-Identifier: Apache-2.0
// Limits and waits of a bucket in an object store.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

namespace varve::bucket {

struct S3Tuning {
  std::size_t requests_max = 64;  ///< Requests in flight; further requests wait in order.
  std::chrono::milliseconds wait_first{100};   ///< Limit of the wait before the second try.
  std::chrono::milliseconds wait_most{20000};  ///< Limit of any wait between two tries.
  /// Time after which an unanswered get, head or list fails with kUnavailable.
  std::chrono::milliseconds read_patience{60000};
  /// The patience for all other requests; zero repeats requests until stop().
  std::chrono::milliseconds change_patience{0};
  std::chrono::milliseconds connect_timeout{10000};  ///< Time for a connection.
  std::chrono::milliseconds stall{30000};            ///< Time without any byte in a request.
  /// Least time after which a get is sent a second time; otherwise, the time is 3 times the median.
  std::chrono::milliseconds second_get_least{100};
  /// Receives the reason for which requests wait, and an empty text once a request succeeds again.
  /// Called from the thread of the requests; must return soon.
  std::function<void(const std::string& trouble)> trouble{};
};

}  // namespace varve::bucket
