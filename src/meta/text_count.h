// SPDX-License-Identifier: Apache-2.0
// The number of texts sealed by the key of an encrypted environment (docs/FORMAT.md §14.3).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "crypto/key_ring.h"
#include "meta/lmdb_types.h"
#include "meta/value_seal.h"
#include "varve/result.h"

namespace varve::meta {

class Txn;
class WriteTxn;

/// The keys of the table kSealTable.
inline constexpr std::string_view kSaltKey = "salt";
inline constexpr std::string_view kTextsKey = "texts";

/// Counts the texts sealed by a key, and ends the use of the key at a limit. The environment stores
/// an upper bound of the number of texts. To change the stored number rarely, the count reserves
/// texts ahead, in blocks that grow with the number of texts of the process.
///
/// The number covers aborted transactions and transactions that failed to commit. The number does
/// not cover a transaction ended by a crash that had sealed more texts than were reserved before.
/// One thread at a time, which holds LMDB's lock of writers; check_salt() and permit_spare_texts()
/// are thread-safe.
class TextCount {
 public:
  /// `table`: the open table kSealTable. `purpose` selects the advice of errors.
  TextCount(TableHandle table, std::shared_ptr<const ValueSeal> seal, crypto::Purpose purpose,
            std::uint64_t texts_max)
      : table_(table), seal_(std::move(seal)), purpose_(purpose), texts_max_(texts_max) {}

  [[nodiscard]] TableHandle table() const { return table_; }

  /// Counts texts of the present transaction, whether the transaction commits or not.
  void add(std::uint64_t texts = 1) { pending_ += texts; }
  /// Stores the number of a new environment.
  [[nodiscard]] Result<void> start(MDB_txn* txn);
  /// Makes the number that commits with `txn` cover all counted texts. `txn` has sealed texts.
  /// Errors: kTooLarge at the limit.
  [[nodiscard]] Result<void> reserve(const WriteTxn& txn);
  /// Permits crypto::kSpareTexts more texts, or not.
  void permit_spare_texts(bool permitted) { spare_ = permitted ? crypto::kSpareTexts : 0; }

  /// Returns the number stored by the environment or, without a number, an estimate.
  [[nodiscard]] Result<std::uint64_t> stored(const Txn& txn) const;
  /// Returns the number of texts that the number in the environment does not cover. The process
  /// must count them again if it opens the environment later.
  [[nodiscard]] std::uint64_t uncovered(const Txn& txn) const;
  /// Returns whether the key has sealed half as many texts as it may.
  [[nodiscard]] Result<bool> is_half_used(const Txn& txn) const;
  /// Returns an error unless the environment has the salt of the seal. Errors: kStale.
  [[nodiscard]] Result<void> check_salt(MDB_txn* txn) const;

 private:
  [[nodiscard]] Result<std::string_view> raw(MDB_txn* txn, std::string_view key) const;
  [[nodiscard]] Result<std::uint64_t> number_of(const Txn& txn, std::string_view record) const;
  [[nodiscard]] Result<void> store(MDB_txn* txn, std::uint64_t number);
  [[nodiscard]] Error at_limit() const;

  const TableHandle table_;
  const std::shared_ptr<const ValueSeal> seal_;
  const crypto::Purpose purpose_;
  const std::uint64_t texts_max_;
  std::atomic<std::uint64_t> spare_ = 0;
  std::uint64_t total_ = 0;    // Texts of the process.
  std::uint64_t pending_ = 0;  // Texts not known to be covered by a stored number.
  std::uint64_t left_ = 0;     // Unused reserved texts.
  std::uint64_t number_ = 0;   // The number of record_.
  std::string record_;         // The record last found or stored by reserve().
  std::uint64_t unsure_ = 0;   // Texts covered by record_ only, if committed.
};

}  // namespace varve::meta
