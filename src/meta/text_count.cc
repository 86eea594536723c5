// SPDX-License-Identifier: Apache-2.0
#include "meta/text_count.h"

#include <fmt/core.h>
#include <lmdb.h>

#include <algorithm>
#include <tuple>

#include "base/coding.h"
#include "base/random_bytes.h"
#include "meta/lmdb.h"
#include "meta/stored_value.h"

namespace varve::meta {

namespace {

// A command with few texts reserves few texts, so that many small commands do not use up the key.
constexpr std::uint64_t kBlockMin = 256;
constexpr std::uint64_t kBlockMax = 65536;
// The estimate for an environment of an earlier release, without a stored number.
constexpr std::uint64_t kTextsOfRecord = 16;
constexpr std::uint64_t kTextsOfCommit = 256;

MDB_val mdb_text(std::string_view s) { return {s.size(), const_cast<char*>(s.data())}; }

Result<std::uint64_t> estimate(const Txn& txn) {
  std::uint64_t records = 0;
  for (TableIndex table = 0; txn.has(table); ++table) {
    VARVE_TRY_ASSIGN(const auto count, txn.count(table));
    records += count;
  }
  return records * kTextsOfRecord + txn.id() * kTextsOfCommit;
}

}  // namespace

// Returns the stored bytes of a record; empty if missing.
Result<std::string_view> TextCount::raw(MDB_txn* txn, std::string_view key) const {
  MDB_val k = mdb_text(key);
  MDB_val v{};
  const int rc = mdb_get(txn, table_, &k, &v);
  if (rc == MDB_NOTFOUND) return std::string_view();
  if (rc != 0) return error_from_lmdb(rc, "read");
  return std::string_view(static_cast<const char*>(v.mv_data), v.mv_size);
}

// A damaged number counts as half of the limit: then the next writer that opens the catalog renews
// the key, and so the number.
Result<std::uint64_t> TextCount::number_of(const Txn& txn, std::string_view record) const {
  if (record.empty()) return estimate(txn);
  const auto sealed = verified_value(kTextsKey, record);
  const auto value =
      sealed ? seal_->open(kSealTable, kTextsKey, *sealed) : Result<Value>(sealed.error());
  if (value) {
    base::ByteReader reader(*value);
    const auto number = reader.u64();
    if (reader.done()) return number;
  }
  VARVE_TRY_ASSIGN(const auto estimated, estimate(txn));
  return std::max(estimated, texts_max_ / 2);
}

Result<std::uint64_t> TextCount::stored(const Txn& txn) const {
  VARVE_TRY_ASSIGN(const auto record, raw(txn.raw(), kTextsKey));
  return number_of(txn, record);
}

std::uint64_t TextCount::uncovered(const Txn& txn) const {
  const auto record = raw(txn.raw(), kTextsKey);
  return record && *record == record_ ? pending_ : pending_ + unsure_;
}

Result<bool> TextCount::is_half_used(const Txn& txn) const {
  VARVE_TRY_ASSIGN(const auto number, stored(txn));
  return number >= texts_max_ / 2;
}

Result<void> TextCount::check_salt(MDB_txn* txn) const {
  VARVE_TRY_ASSIGN(const auto record, raw(txn, kSaltKey));
  if (record.starts_with(seal_->record())) return {};
  return Error(ErrorCode::kStale,
               "the catalog was encrypted again with another key; open the repository again: "
               "unmount it and mount it");
}

Error TextCount::at_limit() const {
  const auto* const advice = purpose_ == crypto::Purpose::kOverlay
                                 ? "seal the open version: the next one has another key"
                                 : "end all programs that have the repository open, also its "
                                   "mount: the next one that opens "
                                   "it for writing gives the catalog another key";
  return {
      ErrorCode::kTooLarge,
      fmt::format("one key has encrypted {} values, which is the limit; {}", texts_max_, advice)};
}

// Counts two texts: the text of the salt, and the text of the number.
Result<void> TextCount::start(MDB_txn* txn) { return store(txn, 2); }

Result<void> TextCount::reserve(const WriteTxn& txn) {
  VARVE_TRY_ASSIGN(const auto record, raw(txn.raw(), kTextsKey));
  if (record.empty() || record != record_) {
    // The first transaction; or the transaction that stored the last number did not commit; or
    // another process has written. The record's reserved texts belong to another process or
    // transaction.
    VARVE_TRY_ASSIGN(number_, number_of(txn, record));
    record_ = record;
    left_ = 0;
    pending_ += unsure_;
  }
  unsure_ = 0;
  if (pending_ <= left_) {
    left_ -= pending_;
    total_ += pending_;
    pending_ = 0;
    return {};
  }
  const auto texts = pending_ - left_ + 1;  // The record is a text, too.
  const auto max = texts_max_ + spare_;
  if (number_ > max || texts > max - number_) return at_limit();
  total_ += pending_;
  left_ = std::min(std::clamp(total_, kBlockMin, kBlockMax), max - number_ - texts);
  VARVE_TRY(store(txn.raw(), number_ + texts + left_));
  number_ += texts + left_;
  unsure_ = texts;
  pending_ = 0;
  return {};
}

Result<void> TextCount::store(MDB_txn* txn, std::uint64_t number) {
  VARVE_TRY_ASSIGN(const auto seed, base::random_bytes<std::tuple_size_v<crypto::NonceSeed>>());
  std::string value;
  base::ByteWriter(value).u64(number);
  record_.resize(ValueSeal::sealed_bytes(kSealTable, value.size()));
  seal_->seal(kSealTable, kTextsKey, seed, value, std::as_writable_bytes(std::span(record_)));
  base::ByteWriter(record_).u32(value_checksum(kTextsKey, record_));
  MDB_val k = mdb_text(kTextsKey);
  MDB_val v = mdb_text(record_);
  const int rc = mdb_put(txn, table_, &k, &v, 0);
  return rc == 0 ? Result<void>() : error_from_lmdb(rc, "write");
}

}  // namespace varve::meta
