// SPDX-License-Identifier: Apache-2.0
// Removes objects that no head needs. docs/decisions/095, 96.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "bucket/bucket.h"
#include "remote/head_retention.h"
#include "remote/replica_state.h"
#include "remote/uploads.h"
#include "varve/result.h"

namespace varve::remote {

/// Returns whether `name` has the form of the data objects' names, R/FOLDER/W-N, or the form of a
/// copy's name. `folder`: the text R/FOLDER/.
[[nodiscard]] bool is_data_name(std::string_view name, std::string_view folder);

/// The time in seconds since 1970 by this machine's clock and the store's clock. One clock may be
/// wrong.
struct ClockRange {
  std::int64_t earlier_s = 0;  ///< The earlier time, for ends of waits: at least the waiting time
                               ///< has passed.
  std::int64_t later_s = 0;    ///< The later time, for beginnings of waits.
};
/// Returns the time by both clocks. `now_s`: time by this machine's clock. Ignores differences of a
/// few minutes.
[[nodiscard]] ClockRange clock_range(const bucket::Bucket& bucket, std::int64_t now_s);

/// The store, and the folder's notes about the store. Lifetime: the objects outlive all users of
/// the place.
struct GarbagePlace {
  bucket::Bucket* bucket = nullptr;
  ReplicaState* state = nullptr;
  std::string repository_id{};
  std::int64_t now_s = 0;  ///< Seconds since 1970, by this machine's clock.
  UploadLimits limits{};
  /// Seconds for which an unnamed object stays.
  std::int64_t wait_s = std::int64_t{24} * 60 * 60;
  std::int64_t lock_s = 0;  ///< Length of the objects' locks in seconds; 0 without locks.
};
/// Returns whether the newest head, or an upload in progress, needs an object.
using IsNamed = std::function<bool(const std::string& object)>;

/// Lists the data objects of the repository, and notes objects unknown to `is_named` as garbage.
/// Aborts interrupted copies inside the store. `newest` returns the number of the newest head, and
/// is called after the listing. The noted objects may be removed once a later head does not name
/// the objects either. Returns the number of noted objects.
/// Errors: errors of the bucket and of the state.
[[nodiscard]] Result<std::uint64_t> note_orphans(
    const GarbagePlace& place, const IsNamed& is_named,
    const std::function<Result<std::uint64_t>()>& newest);

/// Removes noted objects that no head has named for `wait_s` of the place. `head` is the number of
/// the newest head, and `is_named` knows its objects. Leaves objects while possibly locked. Retries
/// objects later if the store refuses their removal. Returns the number of removed objects. Errors:
/// kNotPermitted if the key may not remove objects; errors of the bucket and of the state.
[[nodiscard]] Result<std::uint64_t> remove_garbage(const GarbagePlace& place, std::uint64_t head,
                                                   const IsNamed& is_named);

/// Removes the heads below a guard head: a head older than the newest head by all limits of
/// `retention`, by the store's clock. Returns the number of removed heads. Errors: as
/// remove_garbage().
[[nodiscard]] Result<std::uint64_t> remove_old_heads(const GarbagePlace& place,
                                                     const HeadRetention& retention);

}  // namespace varve::remote
