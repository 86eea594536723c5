// SPDX-License-Identifier: Apache-2.0
// The live objects of a repository, ordered by the ends of the objects' locks. docs/decisions/113.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "meta/lmdb.h"
#include "varve/result.h"

namespace varve::remote {

/// The tables of a folder's state.
enum StateTable : meta::TableIndex { kState = 0, kObjects, kUploaded, kGarbage, kLooks };

/// The key of the newest head.
inline constexpr std::string_view kHeadKey = "head";
/// The key of the number, a u64, of the head whose small objects all have copies. An earlier
/// release creates heads without updating the number.
inline constexpr std::string_view kCopiesKey = "copies";
/// Prefix of the keys of notes about locks; the name of the object follows.
inline constexpr std::string_view kLockPrefix = "locked ";
[[nodiscard]] std::string lock_key(std::string_view object);
/// Returns the end of a lock; 0 for an unreadable value.
[[nodiscard]] std::int64_t lock_end(std::string_view value);

/// Prefix of the keys of the order; the end of a lock as a big-endian u64 and the name of the
/// object follow.
inline constexpr std::string_view kOrderPrefix = "lock order ";
[[nodiscard]] std::string order_key(std::int64_t ends_s, std::string_view object);
/// The key of the number, a u64, of the head with the ordered objects. An earlier release creates
/// heads without updating the number, and so invalidates the order.
inline constexpr std::string_view kOrderedHeadKey = "locks ordered";
/// Returns whether the order contains the objects of the newest head.
[[nodiscard]] Result<bool> is_ordered(const meta::Txn& txn);

/// Changes the order in a transaction. Without an order, as with locks off, only set() writes.
class LockOrder {
 public:
  /// Lifetime: `txn` outlives the object.
  [[nodiscard]] static Result<LockOrder> open(meta::WriteTxn& txn);

  /// Adds a live object with its noted end. Objects already in the order stay. Ignores "".
  [[nodiscard]] Result<void> add(std::string_view object);
  /// Drops an object that is no longer live. The object's note stays.
  [[nodiscard]] Result<void> drop(std::string_view object);
  /// Notes the end of a lock. Changes the order only for an object in the order.
  [[nodiscard]] Result<void> set(std::string_view object, std::int64_t ends_s);
  /// Replaces the objects of the current head by the objects of the next head. `text`: the next
  /// head. Removes the notes about the current head's own object.
  [[nodiscard]] Result<void> change_head(const std::string& text);

 private:
  explicit LockOrder(meta::WriteTxn& txn) : txn_(txn) {}
  [[nodiscard]] Result<std::int64_t> noted(std::string_view object) const;

  meta::WriteTxn& txn_;
  bool is_on_ = false;
};

}  // namespace varve::remote
