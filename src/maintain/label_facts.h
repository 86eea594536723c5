// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "catalog/series_sequences.h"
#include "maintain/manifest_file.h"
#include "meta/lmdb.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::maintain {

/// The facts in the labels of all series about the whole repository: the newest labels, the series
/// named by the newest labels, and the replaced catalogs. For a single use by a single thread.
///
/// Invariant: the named series come from the labels with the highest sequence number so far.
class LabelFacts {
 public:
  /// Adds the labels of a series.
  void add(SeriesId series, const Labels& labels);

  /// Returns whether no labels with a higher sequence number than the series' labels were added.
  [[nodiscard]] bool are_newest(SeriesId series) const;
  /// Returns a message for each series that is missing or older than the newest labels say.
  /// `names`: the names of the present series. `directory` returns the folder of a series.
  [[nodiscard]] std::vector<std::string> lost_series(
      const std::map<SeriesId, std::string>& names,
      const std::function<std::string(SeriesId)>& directory) const;
  /// Stores the sequence numbers of the present series, and the ids of the replaced catalogs.
  [[nodiscard]] Result<void> put(const meta::Env& catalog,
                                 const std::map<SeriesId, std::string>& names) const;

 private:
  catalog::SeriesSequences sequences_;  // Sequence numbers of the labels.
  std::uint64_t newest_ = 0;            // Highest of the sequence numbers.
  catalog::SeriesSequences named_;      // Numbers in the newest labels.
  std::vector<std::string> replaced_;   // Ids of catalogs, the newest last.
};

/// Takes a setting of labels over into the catalog: the highest clock mark and the highest sequence
/// number of all labels. Skips the settings for LabelFacts and PoolClaims.
[[nodiscard]] Result<void> merge_label_setting(meta::WriteTxn& txn, std::string_view key,
                                               std::string_view value);

}  // namespace varve::maintain
