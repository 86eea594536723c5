// SPDX-License-Identifier: Apache-2.0
#include "catalog/series_sequences.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/coding.h"
#include "catalog/sequence_record.h"
#include "meta/schema.h"

namespace varve::catalog {

namespace {

constexpr std::size_t kEntryBytes = 12;

// Returns the record. Without a record, makes a new record: labels of an earlier release may exist,
// with unknown numbers.
Result<SeriesSequences> present_or_new(const meta::Txn& txn) {
  VARVE_TRY_ASSIGN(const auto value, txn.get(meta::catalog::kSettings, kSeriesSequencesSetting));
  if (value) return decode_series_sequences(*value);
  SeriesSequences fresh;
  VARVE_TRY(meta::for_each_prefix(txn, meta::catalog::kSeries, "",
                                  [&](std::string_view key, std::string_view) -> Result<bool> {
                                    if (key.size() == 4) {
                                      fresh.emplace(SeriesId{base::load_be32(key)}, 0);
                                    }
                                    return fresh.size() < kSeriesSequencesMax;
                                  }));
  return fresh;
}

bool counts(const meta::WriteTxn& txn, SeriesId series) {
  return txn.env().matters(meta::catalog::kSeries, meta::series_key(series));
}

}  // namespace

Result<SeriesSequences> decode_series_sequences(std::string_view bytes) {
  const Error malformed(ErrorCode::kCorrupt, "the sequence numbers of the series are malformed");
  if (bytes.size() > kSeriesSequencesMax * kEntryBytes) return malformed;
  base::ByteReader r(bytes);
  SeriesSequences sequences;
  while (r.ok() && r.left() != 0) {
    const auto series = SeriesId{r.u32()};
    const auto number = r.u64();
    const bool ascends = sequences.empty() || sequences.rbegin()->first < series;
    if (!r.ok() || !ascends) return malformed;
    sequences.emplace_hint(sequences.end(), series, number);
  }
  return sequences;
}

Result<SeriesSequences> find_series_sequences(const meta::Txn& txn) {
  VARVE_TRY_ASSIGN(const auto value, txn.get(meta::catalog::kSettings, kSeriesSequencesSetting));
  return value ? decode_series_sequences(*value) : SeriesSequences();
}

Result<void> put_series_sequences(meta::WriteTxn& txn, SeriesSequences sequences) {
  while (sequences.size() > kSeriesSequencesMax) {
    sequences.erase(
        std::ranges::min_element(sequences, {}, [](const auto& entry) { return entry.second; }));
  }
  std::string out;
  base::ByteWriter w(out);
  for (const auto& [series, number] : sequences) {
    w.u32(static_cast<std::uint32_t>(series));
    w.u64(number);
  }
  return txn.put(meta::catalog::kSettings, kSeriesSequencesSetting, out);
}

Result<void> note_series_change(meta::WriteTxn& txn, SeriesId series) {
  if (!counts(txn, series)) return {};
  VARVE_TRY_ASSIGN(const auto before, find_sequence(txn));
  VARVE_TRY_ASSIGN(auto sequences, present_or_new(txn));
  auto& number = sequences[series];
  if (number == before + 1) return {};
  number = before + 1;  // The number of the commit.
  return put_series_sequences(txn, std::move(sequences));
}

Result<void> drop_series_sequence(meta::WriteTxn& txn, SeriesId series) {
  if (!counts(txn, series)) return {};
  VARVE_TRY_ASSIGN(auto sequences, present_or_new(txn));
  sequences.erase(series);
  return put_series_sequences(txn, std::move(sequences));
}

}  // namespace varve::catalog
