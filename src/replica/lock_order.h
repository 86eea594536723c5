// SPDX-License-Identifier: Apache-2.0
// The live objects of a repository in the order in which their locks end. docs/decisions/113.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "meta/lmdb.h"
#include "varve/result.h"

namespace varve::replica {

/// The tables of a folder's state.
enum StateTable : meta::TableIndex { kState = 0, kObjects, kUploaded, kGarbage, kLooks };

/// The key of the newest head.
inline constexpr std::string_view kHeadKey = "head";
/// The keys of notes about locks begin with this; the name of the object follows.
inline constexpr std::string_view kLockPrefix = "locked ";
[[nodiscard]] std::string lock_key(std::string_view object);
/// Returns the end of a lock; 0 for a value that cannot be read.
[[nodiscard]] std::int64_t lock_end(std::string_view value);

/// The keys of the order begin with this; the end of a lock as a big-endian u64, and the name of
/// the object follow.
inline constexpr std::string_view kOrderPrefix = "lock order ";
[[nodiscard]] std::string order_key(std::int64_t ends_s, std::string_view object);
/// The key of the number of the head whose objects are in the order, as a u64. An earlier release
/// creates heads without it: the order does not count then.
inline constexpr std::string_view kOrderedHeadKey = "locks ordered";
/// Returns whether the order has the objects of the newest head.
[[nodiscard]] Result<bool> is_ordered(const meta::Txn& txn);

/// Changes the order in a transaction. Does nothing while there is none, and locks are off.
class LockOrder {
 public:
  /// Lifetime: `txn` outlives the object.
  [[nodiscard]] static Result<LockOrder> open(meta::WriteTxn& txn);

  /// Adds a live object with its noted end. Objects that are there stay. Ignores "".
  [[nodiscard]] Result<void> add(std::string_view object);
  /// Drops an object that is not live any more. Its note stays.
  [[nodiscard]] Result<void> drop(std::string_view object);
  /// Notes the end of a lock. Changes the order only for an object in it.
  [[nodiscard]] Result<void> set(std::string_view object, std::int64_t ends_s);
  /// Replaces the objects of the present head by those of the next one, of this text. The notes of
  /// the present head's own object go.
  [[nodiscard]] Result<void> change_head(const std::string& text);

 private:
  explicit LockOrder(meta::WriteTxn& txn) : txn_(txn) {}
  [[nodiscard]] Result<std::int64_t> noted(std::string_view object) const;

  meta::WriteTxn& txn_;
  bool is_on_ = false;
};

}  // namespace varve::replica
