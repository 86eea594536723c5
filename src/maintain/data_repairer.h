// SPDX-License-Identifier: Apache-2.0
// Repairs the damaged chunks of a series or of the pool: stores them again from equal content, or
// quarantines them. Writes damaged padding again.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/id_runs.h"
#include "base/ids.h"
#include "catalog/layout_records.h"
#include "catalog/location_table.h"
#include "catalog/series_catalog.h"
#include "format/container_record.h"
#include "format/data_codecs.h"
#include "io/file_system.h"
#include "maintain/container_verifier.h"
#include "maintain/header_fixer.h"
#include "meta/lmdb.h"
#include "store/container_writer.h"
#include "store/segment_store.h"
#include "varve/options.h"
#include "varve/repair.h"
#include "varve/result.h"

namespace varve::maintain {

/// Finds and repairs the damaged chunks in one store. Nothing else may change the store during its
/// lifetime. Memory: about 100 bytes per damaged chunk, and a container.
class DataRepairer {
 public:
  /// `owner` is the series that owns the store, or kPoolOwner. `outside` opens the files for
  /// search_file().
  /// Lifetime: all references must outlive the repairer.
  DataRepairer(const format::DataCodecs& codecs, const meta::Env& catalog, io::FileSystem& outside,
               store::SegmentStore& store, SeriesId owner)
      : codecs_(codecs),
        catalog_(catalog),
        outside_(outside),
        store_(store),
        owner_(owner),
        store_id_(catalog::store_of(owner)) {}

  /// Reads all data and finds the damage. Calls `pass` with the bytes read.
  [[nodiscard]] Result<void> scan(const std::function<void(std::uint64_t)>& pass);
  /// Searches the containers of the own store, or of another owner's store, for the lost content.
  /// Lifetime: `store` outlives the repairer.
  [[nodiscard]] Result<void> search_containers() { return search_containers(store_, owner_); }
  [[nodiscard]] Result<void> search_containers(store::SegmentStore& store, SeriesId owner);
  /// Searches a file for the lost content, chunked with the repository's parameters. Skips
  /// unreadable files.
  void search_file(const std::string& path, const RepositoryParameters& parameters);

  /// Returns the containers in which scan() found any damage, used or not.
  [[nodiscard]] const std::vector<format::ContainerRecord>& damaged() const { return damaged_; }
  [[nodiscard]] bool all_found() const { return missing_.empty(); }
  /// Returns the number of damaged chunks for which the searches so far found no other copy.
  [[nodiscard]] std::uint64_t lost_chunks() const { return quarantine().size(); }
  /// Returns how many of the lost chunks have an unknown fingerprint.
  [[nodiscard]] std::uint64_t unrecognizable_chunks() const {
    return base::IdRuns::from(unknown_).size();
  }
  /// Returns the steps that execute() would carry out.
  [[nodiscard]] std::vector<RepairStep> steps() const;
  /// Repairs the damage. `catalog` must be open for writing. Writes files first, then makes one
  /// commit (docs/ORDERING.md O9).
  [[nodiscard]] Result<void> execute(RepairReport& report);

 private:
  /// The place where a chunk's content was found.
  struct Source {
    std::string path;  ///< "" for a container.
    std::uint64_t offset = 0;
    // Otherwise the place in a container.
    store::SegmentStore* store = nullptr;
    StoreId store_id{};
    ContainerNumber container{};
    std::uint32_t index = 0;
  };
  struct Lost {
    ChunkId id;
    Fingerprint fingerprint{};
    std::uint32_t raw_bytes = 0;
  };
  struct Faulty {
    format::ContainerRecord record;
    /// Damaged chunks located in the container; empty if the header is damaged.
    std::vector<Lost> lost;
    std::vector<HeaderFix> fixes;
    bool has_bad_padding = false;
    std::uint64_t unknown = 0;  ///< Chunks lost because the header cannot be read.
  };
  [[nodiscard]] Result<void> note(const format::ContainerRecord& record,
                                  const ContainerVerdict& verdict,
                                  const std::vector<catalog::LocationRecord>& located);
  void found(const Fingerprint& fingerprint, const Source& source);
  [[nodiscard]] Result<void> correct_files();
  [[nodiscard]] Result<store::Correction> padding_of(const format::ContainerRecord& record);
  [[nodiscard]] base::IdRuns quarantine() const;
  [[nodiscard]] Result<std::vector<std::byte>> content_of(const Lost& lost);
  [[nodiscard]] Result<format::BirthMarks> marks_of_lost() const;
  [[nodiscard]] Result<void> store_again(RepairReport& report);
  [[nodiscard]] Result<void> move(const catalog::CounterRecord& counters,
                                  const std::vector<store::WrittenContainer>& written,
                                  const std::map<ContainerNumber, std::vector<base::IdRun>>& moved);

  const format::DataCodecs& codecs_;
  const meta::Env& catalog_;
  io::FileSystem& outside_;
  store::SegmentStore& store_;
  const SeriesId owner_;
  const StoreId store_id_;
  std::vector<format::ContainerRecord> damaged_;
  std::map<ContainerNumber, Faulty> faulty_;      // By container number.
  std::map<Fingerprint, Source> sources_;         // Sources of the lost content found so far.
  std::map<Fingerprint, std::uint32_t> missing_;  // Raw bytes of the chunks still missing.
  std::vector<base::IdRun> unknown_;              // Lost chunks with unknown fingerprints.
  base::IdRuns recorded_;                         // The quarantine in the catalog.
};

}  // namespace varve::maintain
