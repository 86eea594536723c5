// SPDX-License-Identifier: Apache-2.0
// The files of a series' neighbour index: a snapshot names the runs of the index.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "catalog/series_catalog.h"
#include "index/index_fault.h"
#include "index/pool_runs.h"
#include "index/run_set.h"
#include "io/file_system.h"
#include "series/series_parts.h"
#include "varve/result.h"

namespace varve::series {

/// The effect of a deletion on the files of the index: see plan_index_files().
struct IndexFilesPlan {
  std::optional<VersionNumber> from;  ///< Deleted version whose snapshot goes.
  std::optional<VersionNumber> to;    ///< Version that inherits the snapshot.
  bool drops_runs = false;            ///< No version is left to use the runs.
  std::uint64_t freed_bytes = 0;
};

[[nodiscard]] index::RunFolder run_folder(const SeriesParts& parts);
/// Returns the place of the pool's index in the pool's folder. Lifetime: as RunFolder.
[[nodiscard]] index::PoolIndexFolder pool_index_folder(io::FileSystem& files,
                                                       const std::string& directory);
/// Returns the runs named by the snapshot of a version.
/// Errors: kNotFound; kCorrupt; kUnsupported for a snapshot of layout 1.
[[nodiscard]] Result<std::vector<index::RunRef>> read_index_snapshot(const SeriesParts& parts,
                                                                     VersionNumber number);
/// Writes the snapshot of a version with the names of `runs`, durably.
[[nodiscard]] Result<void> write_index_snapshot(const SeriesParts& parts, VersionNumber number,
                                                const std::vector<index::RunRef>& runs);
/// Verifies the snapshot of a version, and every block of its runs. Takes no lock.
/// Errors: kNotFound, kCorrupt.
[[nodiscard]] Result<void> verify_index_files(const SeriesParts& parts, VersionNumber number);
/// Reads every snapshot in a series' folder, and every block of the runs named. Returns the damaged
/// files; a missing file is no fault. Needs no catalog. No writer may be active. Errors: those of
/// listing the folder.
[[nodiscard]] Result<std::vector<index::IndexFault>> faults_of_index_files(
    io::FileSystem& files, const std::string& directory, SeriesId series);
/// Reads the files of the pool's index in the pool's folder, as index::faults_of_pool_index().
[[nodiscard]] std::vector<index::IndexFault> faults_of_pool_files(io::FileSystem& files,
                                                                  const std::string& directory);
/// Removes all runs not in `runs`.
[[nodiscard]] Result<void> remove_other_runs(const SeriesParts& parts,
                                             const std::vector<index::RunRef>& runs);
/// Removes the snapshots of other versions, and the runs not named by the snapshot of `number`.
[[nodiscard]] Result<void> remove_other_index_files(const SeriesParts& parts, VersionNumber number);
/// Returns the size of all files of the index.
[[nodiscard]] Result<std::uint64_t> index_file_bytes(const SeriesParts& parts);

/// Plans a deletion of `gone`, of the series' versions `all`. The index of the newest version stays
/// for the version that becomes the newest.
[[nodiscard]] Result<IndexFilesPlan> plan_index_files(
    const SeriesParts& parts, const std::vector<catalog::VersionRecord>& all,
    const std::vector<catalog::VersionRecord>& gone);
/// Writes the snapshot of the version that becomes the newest. Call before the deletion's commit.
[[nodiscard]] Result<void> prepare_index_files(const SeriesParts& parts,
                                               const IndexFilesPlan& plan);
/// Removes unneeded files. Call after the deletion's commit.
[[nodiscard]] Result<void> apply_index_files(const SeriesParts& parts, const IndexFilesPlan& plan);

}  // namespace varve::series
