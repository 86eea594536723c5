// SPDX-License-Identifier: Apache-2.0
// Removes from an object store what no head needs. docs/decisions/95, 96.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "bucket/bucket.h"
#include "replica/replica_state.h"
#include "replica/uploads.h"
#include "varve/result.h"

namespace varve::replica {

/// The time in seconds since 1970 by two clocks, of which one may be wrong: this machine's and the
/// store's.
struct ClockRange {
  std::int64_t earlier_s = 0;  ///< Ends waits: at least so much time has passed.
  std::int64_t later_s = 0;    ///< Begins waits.
};
/// Returns the time by both clocks. `now_s` is that of this machine. Differences of a few minutes
/// are ignored.
[[nodiscard]] ClockRange clock_range(const bucket::Bucket& bucket, std::int64_t now_s);

/// The store and the folder's notes about it. Lifetime: the objects outlive its users.
struct GarbagePlace {
  bucket::Bucket* bucket = nullptr;
  ReplicaState* state = nullptr;
  std::string repository_id{};
  std::int64_t now_s = 0;  ///< Seconds since 1970, by this machine's clock.
  UploadLimits limits{};
  /// Seconds for which an object that no head names stays.
  std::int64_t wait_s = std::int64_t{24} * 60 * 60;
  std::int64_t lock_s = 0;  ///< Length of the objects' locks in seconds; 0 without locks.
};
/// Returns whether the newest head, or an upload in progress, needs an object.
using IsNamed = std::function<bool(const std::string& object)>;

/// Lists the data objects of the repository, and notes those that `is_named` does not know as
/// garbage. Aborts what interrupted copies inside the store left. `newest` returns the number of
/// the newest head, and is called after the listing: the objects may be removed once a later head
/// does not name them either. Returns the number of objects that were noted. Errors: those of the
/// bucket and of the state.
[[nodiscard]] Result<std::uint64_t> note_orphans(
    const GarbagePlace& place, const IsNamed& is_named,
    const std::function<Result<std::uint64_t>()>& newest);

/// Removes noted objects that no head has named for so long as the place says. `head` is the number
/// of the newest head, and `is_named` knows its objects. Leaves objects while they may be locked,
/// and tries those again later that the store refuses to remove. Returns the number of removed
/// objects. Errors: kNotPermitted if the key may not remove objects; others of the bucket and of
/// the state.
[[nodiscard]] Result<std::uint64_t> remove_garbage(const GarbagePlace& place, std::uint64_t head,
                                                   const IsNamed& is_named);

/// The heads that stay: those above a guard head, which is so much older than the newest head.
struct HeadRetention {
  std::uint64_t heads = 1000;
  std::int64_t seconds = std::int64_t{30} * 24 * 60 * 60;
};
/// Removes the heads below a guard head: a head that is older than the newest one by all that
/// `retention` says, by the store's clock. Returns the number of removed heads. Errors: as
/// remove_garbage().
[[nodiscard]] Result<std::uint64_t> remove_old_heads(const GarbagePlace& place,
                                                     const HeadRetention& retention);

}  // namespace varve::replica
