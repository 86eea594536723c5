// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "meta/lmdb.h"
#include "varve/result.h"

namespace varve::remote {

/// The end of an object's lock, in seconds since 1970 by the store's clock.
struct ObjectLockEnd {
  std::string name{};
  std::int64_t ends_s = 0;  ///< 0 if unknown.
};

/// The folder's notes about the locks of the store's objects. Thread-safe: each call is one
/// transaction of the folder's state. docs/decisions/113.
class LockNotes {
 public:
  /// Lifetime: `state` outlives the notes.
  explicit LockNotes(const meta::Env& state) : state_(state) {}

  /// Returns the known ends of locks, in seconds since 1970 by the store's clock.
  [[nodiscard]] Result<std::map<std::string, std::int64_t>> ends() const;
  /// Adds ends of locks.
  [[nodiscard]] Result<void> set_ends(const std::map<std::string, std::int64_t>& ends);
  /// Puts the objects `live` of the newest head, with the number `head`, in the order of their
  /// locks' ends. An unknown lock counts as ended at 0. Forgets the locks of objects neither in
  /// `live` nor garbage. From now on, ReplicaState::commit() adds and drops objects.
  [[nodiscard]] Result<void> order(const std::set<std::string>& live, std::uint64_t head);
  /// Forgets the order.
  [[nodiscard]] Result<void> forget_order();
  [[nodiscard]] Result<bool> has_order() const;
  /// Returns at most `max` live objects with locks ending from `from` to before `to`, in ascending
  /// order of the ends. Requires an order.
  /// Errors: kStale if the order must be made again; errors of the state.
  [[nodiscard]] Result<std::vector<ObjectLockEnd>> ending(std::int64_t from, std::int64_t to,
                                                          std::size_t max) const;

 private:
  const meta::Env& state_;
};

}  // namespace varve::remote
