// SPDX-License-Identifier: Apache-2.0
#include "remote/lock_order.h"

#include "base/coding.h"
#include "remote/head.h"

namespace varve::remote {

namespace {

// Returns none for an empty text.
Result<std::set<std::string>> objects_of(const std::string& text) {
  if (text.empty()) return std::set<std::string>();
  VARVE_TRY_ASSIGN(const auto head, decode_head(text));
  return names_of(head);
}

}  // namespace

std::string lock_key(std::string_view object) {
  return std::string(kLockPrefix) + std::string(object);
}

std::int64_t lock_end(std::string_view value) {
  base::ByteReader reader(value);
  const auto end = static_cast<std::int64_t>(reader.u64());
  return reader.done() ? end : 0;
}

std::string order_key(std::int64_t ends_s, std::string_view object) {
  return std::string(kOrderPrefix)
      .append(base::be64(static_cast<std::uint64_t>(ends_s)))
      .append(object);
}

Result<bool> is_ordered(const meta::Txn& txn) {
  VARVE_TRY_ASSIGN(const auto ordered, txn.get(kState, kOrderedHeadKey));
  if (!ordered) return false;
  base::ByteReader reader(ordered->view());
  const auto number = reader.u64();
  VARVE_TRY_ASSIGN(const auto text, txn.get(kState, kHeadKey));
  if (!text) return number == 0;
  VARVE_TRY_ASSIGN(const auto head, decode_head(std::string(text->view())));
  return reader.done() && head.number == number;
}

Result<LockOrder> LockOrder::open(meta::WriteTxn& txn) {
  LockOrder order(txn);
  VARVE_TRY_ASSIGN(order.is_on_, is_ordered(txn));
  return order;
}

Result<std::int64_t> LockOrder::noted(std::string_view object) const {
  VARVE_TRY_ASSIGN(const auto value, txn_.get(kState, lock_key(object)));
  return value ? lock_end(value->view()) : std::int64_t{0};
}

Result<void> LockOrder::add(std::string_view object) {
  if (!is_on_ || object.empty()) return {};
  VARVE_TRY_ASSIGN(const auto end, noted(object));
  return txn_.put(kState, order_key(end, object), "");
}

Result<void> LockOrder::drop(std::string_view object) {
  if (!is_on_) return {};
  VARVE_TRY_ASSIGN(const auto end, noted(object));
  return txn_.erase(kState, order_key(end, object));
}

Result<void> LockOrder::set(std::string_view object, std::int64_t ends_s) {
  VARVE_TRY_ASSIGN(const auto before, noted(object));
  const auto key = order_key(before, object);
  VARVE_TRY_ASSIGN(const auto ordered, txn_.get(kState, key));
  if (ordered) {
    VARVE_TRY(txn_.erase(kState, key));
    VARVE_TRY(txn_.put(kState, order_key(ends_s, object), ""));
  }
  std::string value;
  base::ByteWriter(value).u64(static_cast<std::uint64_t>(ends_s));
  return txn_.put(kState, lock_key(object), value);
}

Result<void> LockOrder::change_head(const std::string& text) {
  if (!is_on_) return {};
  std::string present;
  {
    VARVE_TRY_ASSIGN(const auto value, txn_.get(kState, kHeadKey));
    if (value) present = std::string(value->view());
  }
  VARVE_TRY_ASSIGN(const auto before, objects_of(present));
  VARVE_TRY_ASSIGN(const auto now, objects_of(text));
  for (const auto& name : before) {
    if (now.contains(name)) continue;
    VARVE_TRY(drop(name));
  }
  for (const auto& name : now) {
    if (!before.contains(name)) VARVE_TRY(add(name));
  }
  VARVE_TRY_ASSIGN(const auto next, decode_head(text));
  std::string number;
  base::ByteWriter(number).u64(next.number);
  VARVE_TRY(txn_.put(kState, kOrderedHeadKey, number));
  if (present.empty()) return {};
  VARVE_TRY_ASSIGN(const auto head, decode_head(present));
  const auto name = head_name(head.repository_id, head.number);
  VARVE_TRY(txn_.erase(kState, lock_key(copy_name(name))));
  return txn_.erase(kState, lock_key(name));
}

}  // namespace varve::remote
