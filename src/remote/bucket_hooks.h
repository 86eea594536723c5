// SPDX-License-Identifier: Apache-2.0
// How repositories in object stores are opened.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/clock.h"
#include "remote/bucket_config.h"
#include "remote/head_retention.h"
#include "remote/object_locks.h"
#include "remote/uploads.h"
#include "varve/object_store.h"

namespace varve::remote {

struct ReplicateReport;

/// How repositories in object stores are opened. Tests replace the defaults.
struct BucketHooks {
  BucketOpener open{};                 ///< Empty for S3-compatible stores.
  const base::Clock* clock = nullptr;  ///< Null for the system's clock.
  /// True to replicate in a thread after each seal and deletion, false at closing only.
  bool in_background = true;
  /// How long a writer waits for a store without progress.
  std::chrono::milliseconds patience = std::chrono::minutes(10);
  /// False to return kUnavailable from close() at once when the store does not answer.
  bool waits_for_store = true;
  /// False: a probe of the store's conditions opens no further clients.
  bool opens_racers = true;
  std::uint64_t extent_bytes_max = std::uint64_t{64} << 20;
  std::uint64_t delta_bytes_min = std::uint64_t{4} << 20;
  UploadLimits uploads{};
  HeadRetention heads{};
  /// Receives the report of each replication.
  std::function<void(const ReplicateReport&)> replicated{};
  /// Bytes of new data after which the final parts of an open version are uploaded; 0: nothing is
  /// uploaded before a seal.
  std::uint64_t early_bytes = std::uint64_t{64} << 20;
  std::size_t locks_at_once = kLocksAtOnce;
  /// Receives the report of each extension of locks.
  std::function<void(const LockReport&)> locks_extended{};
};
/// Returns how to open a repository's store: the opener of the hooks, otherwise with `access`.
[[nodiscard]] BucketOpener bucket_opener(const BucketHooks& hooks, const StoreAccess& access);

}  // namespace varve::remote
