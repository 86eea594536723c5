// SPDX-License-Identifier: Apache-2.0
// The files of the pool's index: runs, and the snapshot with the list of runs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/id_runs.h"
#include "base/ids.h"
#include "index/run_set.h"
#include "varve/result.h"

namespace varve::index {

/// The series named in the files of the pool's index.
inline constexpr SeriesId kPoolSeries{0};

/// The folder of the pool's index.
struct PoolIndexFolder {
  RunFolder runs;             ///< `series` must be kPoolSeries.
  std::string snapshot_name;  ///< Name of the snapshot.
  /// Returns the number of a run from the name of its file; nullopt for any other name.
  std::function<std::optional<std::uint32_t>(std::string_view name)> number_of;
};

/// Runs with entries of chunks of the pool, or of markers. Not thread-safe.
///
/// A marker is an entry with the number of a series as birth, without kPoolBit, and with ordinal 1.
class PoolRuns {
 public:
  explicit PoolRuns(PoolIndexFolder folder)
      : folder_(std::move(folder)), set_(folder_.runs, 0, is_marker) {}

  [[nodiscard]] static bool is_marker(ChunkId id) { return !is_pool(id); }
  [[nodiscard]] static ChunkId marker_of(SeriesId series) {
    return ChunkId::make(static_cast<VersionNumber>(series), 1);
  }
  [[nodiscard]] static SeriesId series_of(ChunkId marker) {
    return static_cast<SeriesId>(marker.birth());
  }

  /// Opens the runs of the snapshot, and removes all remaining runs. Logs and leaves out damaged or
  /// missing runs. Returns the birth below which the runs miss no stored chunk.
  [[nodiscard]] VersionNumber open();
  /// Writes a snapshot with the present runs and `complete_below`. Then removes all remaining runs.
  /// Errors: the errors of writing the snapshot.
  [[nodiscard]] Result<void> save(VersionNumber complete_below);
  /// Removes the runs and the snapshot in the folder. Logs errors.
  static void remove_all(const PoolIndexFolder& folder);
  [[nodiscard]] RunSet& set() { return set_; }
  [[nodiscard]] const RunSet& set() const { return set_; }

 private:
  struct Snapshot {
    std::vector<RunRef> runs;
    VersionNumber complete_below{};
  };
  [[nodiscard]] Result<Snapshot> read_snapshot() const;
  void remove_other_runs(const std::vector<RunRef>& refs) const;

  const PoolIndexFolder folder_;
  RunSet set_;
};

}  // namespace varve::index
