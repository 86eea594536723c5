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
/// labels of every series have the record, so older labels of another series are detected
/// (docs/decisions/106).
inline constexpr std::string_view kSeriesSequencesSetting = "series_sequences";
/// Maximum number of series in the record: the series with the highest numbers.
inline constexpr std::size_t kSeriesSequencesMax = 1000;

/// The minimum sequence number of the labels of each series. 0 for a series that has not changed
/// since the record was made.
using SeriesSequences = std::map<SeriesId, std::uint64_t>;

/// Decodes the record. Errors: kCorrupt.
[[nodiscard]] Result<SeriesSequences> decode_series_sequences(std::string_view bytes);
/// Returns the record; empty if there is none. Errors: kCorrupt.
[[nodiscard]] Result<SeriesSequences> find_series_sequences(const meta::Txn& txn);
/// Stores the record, with the highest numbers if there are too many.
[[nodiscard]] Result<void> put_series_sequences(meta::WriteTxn& txn, SeriesSequences sequences);

/// Notes that the present transaction changes the series' part of the labels. The caller writes the
/// labels after the commit. Does nothing if commits are not counted (catalog/sequence_record.h).
[[nodiscard]] Result<void> note_series_change(meta::WriteTxn& txn, SeriesId series);
/// Drops a series removed by the present transaction.
[[nodiscard]] Result<void> drop_series_sequence(meta::WriteTxn& txn, SeriesId series);

}  // namespace varve::catalog
