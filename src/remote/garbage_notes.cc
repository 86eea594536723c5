// SPDX-License-Identifier: Apache-2.0
#include "remote/garbage_notes.h"

#include <algorithm>

#include "base/coding.h"
#include "remote/lock_order.h"

namespace varve::remote {

namespace {

constexpr std::size_t kNotesAtOnce = 10'000;

}  // namespace

std::string garbage_note(std::int64_t seconds, std::uint64_t number) {
  std::string note;
  base::ByteWriter writer(note);
  writer.u64(static_cast<std::uint64_t>(seconds));
  writer.u64(number);
  return note;
}

Result<std::uint64_t> GarbageNotes::count() const {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(state_));
  return txn.count(kGarbage);
}

Result<std::uint64_t> GarbageNotes::add(const std::vector<std::string>& names, std::int64_t seconds,
                                        std::uint64_t number) {
  std::uint64_t added = 0;
  const auto note = garbage_note(seconds, number);
  for (std::size_t i = 0; i < names.size();) {
    VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(state_));
    VARVE_TRY_ASSIGN(auto locks, LockOrder::open(txn));
    const auto end = std::min(names.size(), i + kNotesAtOnce);
    for (; i < end; ++i) {
      VARVE_TRY_ASSIGN(const auto known, txn.get(kGarbage, names[i]));
      if (known) continue;
      VARVE_TRY(txn.put(kGarbage, names[i], note));
      VARVE_TRY(locks.drop(names[i]));
      ++added;
    }
    VARVE_TRY(txn.commit());
  }
  return added;
}

Result<std::vector<std::string>> GarbageNotes::due(std::int64_t before, std::uint64_t head,
                                                   std::size_t max,
                                                   const GarbageLocks& locks) const {
  std::vector<std::string> names;
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(state_));
  VARVE_TRY(meta::for_each_prefix(
      txn, kGarbage, "", [&](std::string_view key, std::string_view value) -> Result<bool> {
        base::ByteReader reader(value);
        const auto noted = static_cast<std::int64_t>(reader.u64());
        const auto number = reader.u64();
        if (!reader.done() || noted >= before || number > head) return true;
        VARVE_TRY_ASSIGN(const auto lock, txn.get(kState, lock_key(key)));
        const bool may_be_locked =
            lock ? lock_end(lock->view()) >= locks.noted_before : noted >= locks.unknown_before;
        if (!may_be_locked) names.emplace_back(key);
        return names.size() < max;
      }));
  return names;
}

Result<void> GarbageNotes::postpone(const std::vector<std::string>& names, std::int64_t seconds) {
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(state_));
  for (const auto& name : names) {
    VARVE_TRY_ASSIGN(const auto known, txn.get(kGarbage, name));
    if (!known) continue;
    base::ByteReader reader(known->view());
    static_cast<void>(reader.u64());
    VARVE_TRY(txn.put(kGarbage, name, garbage_note(seconds, reader.u64())));
  }
  return txn.commit();
}

Result<void> GarbageNotes::forget(const std::vector<std::string>& names) {
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(state_));
  VARVE_TRY_ASSIGN(auto locks, LockOrder::open(txn));
  for (const auto& name : names) {
    VARVE_TRY(txn.erase(kGarbage, name));
    VARVE_TRY(locks.set(name, 0));  // Corrects the order for an object that is live again.
    VARVE_TRY(txn.erase(kState, lock_key(name)));
  }
  return txn.commit();
}

}  // namespace varve::remote
