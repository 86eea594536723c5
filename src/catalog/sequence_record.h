// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "meta/lmdb.h"
#include "varve/result.h"

namespace varve::catalog {

/// The key of the record among the settings: the number of changes of an encrypted repository that
/// a user would miss. An older state of the repository has a lower number (docs/decisions/085).
inline constexpr std::string_view kSequenceSetting = "sequence";

/// Returns the number, or 0 if there is none. Errors: kCorrupt.
[[nodiscard]] Result<std::uint64_t> find_sequence(const meta::Txn& txn);
[[nodiscard]] Result<void> put_sequence(meta::WriteTxn& txn, std::uint64_t sequence);
[[nodiscard]] Result<std::uint64_t> decode_sequence(std::string_view bytes);

/// Returns whether a user would miss a change of the record: a change of a series, a version or its
/// lock, of a setting chosen by a user, or of the keys.
[[nodiscard]] bool counts_in_sequence(meta::TableIndex table, std::string_view key);
/// Adds 1 to the number. Part of every commit with a counted change.
[[nodiscard]] Result<void> advance_sequence(meta::WriteTxn& txn);

}  // namespace varve::catalog
