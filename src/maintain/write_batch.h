// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <utility>

#include "meta/lmdb.h"
#include "varve/result.h"

namespace varve::maintain {

/// Splits writes into several transactions, so that none becomes too large. Without commit(), the
/// last transaction is lost. Not thread-safe.
class WriteBatch {
 public:
  explicit WriteBatch(const meta::Env& catalog) : catalog_(catalog) {}

  /// Returns the transaction for the next `bytes`.
  [[nodiscard]] Result<meta::WriteTxn*> txn(std::size_t bytes) {
    if (txn_ && bytes_ > kBytesMax) VARVE_TRY(commit());
    if (!txn_) {
      VARVE_TRY_ASSIGN(auto begun, meta::WriteTxn::begin(catalog_));
      txn_.emplace(std::move(begun));
    }
    bytes_ += bytes;
    return &*txn_;
  }
  [[nodiscard]] Result<void> commit() {
    if (!txn_) return {};
    auto committed = txn_->commit();
    txn_.reset();
    bytes_ = 0;
    return committed;
  }

 private:
  static constexpr std::size_t kBytesMax = std::size_t{32} << 20;

  const meta::Env& catalog_;
  std::optional<meta::WriteTxn> txn_;
  std::size_t bytes_ = 0;
};

}  // namespace varve::maintain
