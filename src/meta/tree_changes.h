// SPDX-License-Identifier: Apache-2.0
// The difference of two snapshots of one environment, at the cost of the different pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "meta/lmdb.h"
#include "varve/result.h"

namespace varve::meta {

/// The work of for_each_changed_key().
struct TreeWork {
  std::uint64_t pages = 0;    ///< Pages read, of both snapshots.
  std::uint64_t records = 0;  ///< Compared records on the pages read.
};

/// Calls `visit` with the index in `tables` and the key of each record added, removed or changed
/// between two snapshots: the tables in their order, and the keys of each table in ascending order.
/// A record rewritten with the same bytes may be left out.
///
/// LMDB never writes to a page of a snapshot in use by a transaction: each commit puts changed
/// pages, and the pages above them, at other places. So equal page numbers have equal content, and
/// are not read.
/// `before` must have been open without a break since its snapshot was the last commit, and
/// `tables` may name missing tables. Lifetime: keys are valid during the call of `visit`.
/// Errors: kInvalid for snapshots of two environments, or in the wrong order; kCorrupt for a page
/// that LMDB would not write; kIo; the errors of `visit`.
[[nodiscard]] Result<TreeWork> for_each_changed_key(
    const ReadTxn& before, const ReadTxn& after, std::span<const char* const> tables,
    const std::function<Result<void>(std::size_t table, std::string_view key)>& visit);

}  // namespace varve::meta
