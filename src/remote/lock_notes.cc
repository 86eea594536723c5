// SPDX-License-Identifier: Apache-2.0
#include "remote/lock_notes.h"

#include <utility>

#include "base/coding.h"
#include "remote/lock_order.h"

namespace varve::remote {

Result<std::map<std::string, std::int64_t>> LockNotes::ends() const {
  std::map<std::string, std::int64_t> ends;
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(state_));
  VARVE_TRY(meta::for_each_prefix(
      txn, kState, kLockPrefix, [&](std::string_view key, std::string_view value) -> Result<bool> {
        ends.emplace(key.substr(kLockPrefix.size()), lock_end(value));
        return true;
      }));
  return ends;
}

Result<void> LockNotes::set_ends(const std::map<std::string, std::int64_t>& ends) {
  if (ends.empty()) return {};
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(state_));
  VARVE_TRY_ASSIGN(auto order, LockOrder::open(txn));
  for (const auto& [name, end] : ends) VARVE_TRY(order.set(name, end));
  return txn.commit();
}

Result<void> LockNotes::order(const std::set<std::string>& live, std::uint64_t head) {
  VARVE_TRY_ASSIGN(const auto known, ends());
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(state_));
  VARVE_TRY(txn.erase_prefix(kState, kOrderPrefix));
  for (const auto& [name, end] : known) {
    if (live.contains(name)) continue;
    VARVE_TRY_ASSIGN(const auto garbage, txn.get(kGarbage, name));
    if (!garbage) VARVE_TRY(txn.erase(kState, lock_key(name)));
  }
  for (const auto& name : live) {
    const auto end = known.find(name);
    VARVE_TRY(txn.put(kState, order_key(end == known.end() ? 0 : end->second, name), ""));
  }
  std::string number;
  base::ByteWriter(number).u64(head);
  VARVE_TRY(txn.put(kState, kOrderedHeadKey, number));
  return txn.commit();
}

Result<void> LockNotes::forget_order() {
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(state_));
  VARVE_TRY(txn.erase_prefix(kState, kOrderPrefix));
  VARVE_TRY(txn.erase(kState, kOrderedHeadKey));
  return txn.commit();
}

Result<bool> LockNotes::has_order() const {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(state_));
  return is_ordered(txn);
}

Result<std::vector<ObjectLockEnd>> LockNotes::ending(std::int64_t from, std::int64_t to,
                                                     std::size_t max) const {
  std::vector<ObjectLockEnd> found;
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(state_));
  VARVE_TRY_ASSIGN(auto cursor, meta::Cursor::open(txn, kState));
  const auto end = order_key(to, "");
  auto entry = cursor.seek(order_key(from, ""));
  while (true) {
    if (!entry) return std::move(entry).error();
    if (!*entry || (*entry)->key >= end || found.size() >= max) return found;
    const auto key = (*entry)->key;
    if (key.size() < end.size()) {
      return Error(ErrorCode::kStale, "a place in the order of locks is malformed");
    }
    const auto seconds =
        static_cast<std::int64_t>(base::load_be64(key.substr(kOrderPrefix.size())));
    const auto name = key.substr(end.size());
    VARVE_TRY_ASSIGN(const auto noted, txn.get(kState, lock_key(name)));
    if ((noted ? lock_end(noted->view()) : 0) != seconds) {
      return Error(ErrorCode::kStale, "an earlier release has changed the ends of locks");
    }
    found.push_back({std::string(name), seconds});
    entry = cursor.next();
  }
}

}  // namespace varve::remote
