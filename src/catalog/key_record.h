// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "meta/lmdb.h"
#include "varve/result.h"

namespace varve::catalog {

/// The key of the record among the settings: the superblock's counter of changes of the key slots.
/// A restored older superblock has a lower counter.
inline constexpr std::string_view kKeyCounterSetting = "key_counter";

/// Returns the counter, or 0 if there is none. Errors: kCorrupt.
[[nodiscard]] Result<std::uint32_t> find_key_counter(const meta::Txn& txn);
[[nodiscard]] Result<void> put_key_counter(meta::WriteTxn& txn, std::uint32_t counter);

}  // namespace varve::catalog
