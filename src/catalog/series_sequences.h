// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>

#include "base/ids.h"
#include "meta/lmdb.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::catalog {

/// The key of the record among the settings: the sequence number of each series' last change. The
/// labels of any series have it, so older labels of another one show (docs/decisions/106).
inline constexpr std::string_view kSeriesSequencesSetting = "series_sequences";
/// Only so many series are in the record: those with the highest numbers.
inline constexpr std::size_t kSeriesSequencesMax = 1000;

/// The sequence number that the labels of each series must have at least. 0 for a series that has
/// not changed since the record was made.
using SeriesSequences = std::map<SeriesId, std::uint64_t>;

/// Decodes the record. Errors: kCorrupt.
[[nodiscard]] Result<SeriesSequences> decode_series_sequences(std::string_view bytes);
/// Returns the record; empty if there is none. Errors: kCorrupt.
[[nodiscard]] Result<SeriesSequences> find_series_sequences(const meta::Txn& txn);
/// Stores the record, with the highest numbers if there are too many.
[[nodiscard]] Result<void> put_series_sequences(meta::WriteTxn& txn, SeriesSequences sequences);

/// Notes that the present transaction changes what the labels of the series have. The caller writes
/// these after the commit. Does nothing if commits are not counted (catalog/sequence_record.h).
[[nodiscard]] Result<void> note_series_change(meta::WriteTxn& txn, SeriesId series);
/// Drops a series that the present transaction removes.
[[nodiscard]] Result<void> drop_series_sequence(meta::WriteTxn& txn, SeriesId series);

}  // namespace varve::catalog
