// SPDX-License-Identifier: Apache-2.0
// Damaged chunks of one series: found, stored anew where the same content is at hand, or set apart.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/id_runs.h"
#include "catalog/location_table.h"
#include "io/file_system.h"
#include "layout/category_layout.h"
#include "maintain/container_verifier.h"
#include "maintain/head_fixer.h"
#include "meta/lmdb.h"
#include "store/segment_files.h"
#include "varve/options.h"
#include "varve/repair.h"
#include "varve/result.h"

namespace varve::maintain {

/// Made for one series. Nothing else may change the series meanwhile. Memory: 100 bytes or so a
/// damaged chunk, and a container.
class DataMender {
 public:
  /// `outside` has the files that search_file() is given.
  DataMender(const meta::Env& catalog, io::FileSystem& files, io::FileSystem& outside,
             std::string series_directory, SeriesId series)
      : catalog_(catalog),
        files_(files),
        outside_(outside),
        directory_(std::move(series_directory)),
        series_(series) {}

  /// Reads all data. `pass` gets the bytes read.
  [[nodiscard]] Result<void> look(const std::function<void(std::uint64_t)>& pass);
  /// Looks for the lost content in the series' other containers.
  [[nodiscard]] Result<void> search_containers();
  /// Looks for it in a file, cut as the repository's files are. Files that cannot be read are
  /// passed over.
  void search_file(const std::string& path, const RepositoryParameters& parameters);

  /// Containers in which look() found anything wrong, used or not.
  [[nodiscard]] const std::vector<store::ContainerRecord>& damaged() const { return damaged_; }
  [[nodiscard]] bool all_found() const { return missing_.empty(); }
  /// What execute() would do.
  [[nodiscard]] std::vector<RepairStep> steps() const;
  /// `catalog` must be open for writing. Files first, then one commit (docs/ORDERING.md O15).
  [[nodiscard]] Result<void> execute(const RepositoryParameters& parameters, RepairReport& report);

 private:
  /// Where a chunk's content was found.
  struct Source {
    std::string path;
    std::uint64_t offset = 0;
    std::uint32_t container = 0;  ///< If the path is empty.
    std::uint32_t index = 0;
  };
  struct Lost {
    ChunkId id;
    Fingerprint fingerprint{};
    std::uint32_t raw_bytes = 0;
  };
  struct Faulty {
    store::ContainerRecord record;
    std::vector<Lost> lost;  ///< Located there, and damaged; empty if the head is.
    std::vector<HeadFix> fixes;
    std::uint64_t unknown = 0;  ///< Chunks of a head that cannot be read.
  };
  [[nodiscard]] Result<void> note(const store::ContainerRecord& record,
                                  const ContainerVerdict& verdict,
                                  const std::vector<catalog::LocationRecord>& located);
  void found(const Fingerprint& fingerprint, const Source& source);
  [[nodiscard]] base::IdRuns quarantine() const;
  [[nodiscard]] Result<std::vector<std::byte>> content_of(const Lost& lost);
  [[nodiscard]] Result<void> store_anew(const RepositoryParameters& parameters,
                                        RepairReport& report);
  [[nodiscard]] Result<void> move(layout::CategoryLayout& layout,
                                  const std::vector<store::WrittenContainer>& written,
                                  const std::map<std::uint32_t, std::vector<base::IdRun>>& moved);

  const meta::Env& catalog_;
  io::FileSystem& files_;
  io::FileSystem& outside_;
  const std::string directory_;
  const SeriesId series_;
  std::vector<store::ContainerRecord> damaged_;
  std::map<std::uint32_t, Faulty> faulty_;        // By container.
  std::map<Fingerprint, Source> sources_;         // Of what was lost and found.
  std::map<Fingerprint, std::uint32_t> missing_;  // What is still looked for: its raw bytes.
  std::vector<base::IdRun> unknown_;              // Lost, and nobody knows their fingerprint.
  base::IdRuns recorded_;                         // The quarantine as it is.
};

}  // namespace varve::maintain
