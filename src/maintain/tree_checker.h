// SPDX-License-Identifier: Apache-2.0
// Whether the trees of sealed versions can be read, and which files damage touches.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/id_runs.h"
#include "catalog/object_store.h"
#include "catalog/series_catalog.h"
#include "meta/lmdb.h"
#include "varve/maintenance.h"
#include "varve/result.h"

namespace varve::maintain {

/// Chunks that a damage in the report is about.
struct DamagedChunks {
  std::size_t report_index = 0;
  base::IdRuns ids;
};

/// Checks the versions of one series. Each page and recipe is read once, in however many versions
/// and places it is: the time does not depend on what a tree says that it holds. Memory: 40 bytes
/// or so a page. Not thread-safe.
class TreeChecker {
 public:
  /// `damaged` must be complete, and outlive the checker, as `report` must.
  TreeChecker(const meta::Env& catalog, const catalog::SeriesRecord& series,
              std::string catalog_path, const std::vector<DamagedChunks>& damaged,
              CheckReport& report);

  /// Adds to the report what is wrong with the version's tree and record of hard links, and names
  /// the version's files that damaged chunks and pages touch: each by all its names, up to a bound.
  void check(const catalog::VersionRecord& version);

 private:
  /// What was found out about a page and everything below it.
  struct PageFacts {
    std::uint64_t span = 0;    ///< As format::span_of_page.
    std::uint64_t linked = 0;  ///< Names with a link group.
    bool touched = false;      ///< A file below, or a page, is damaged.
    bool broken = false;       ///< A page is damaged: it, or one below.
  };
  struct Place;
  using Visit = std::function<bool(const Place& place)>;

  /// Finds the facts of all pages below `root` that are not known yet.
  void learn(format::NodeId root);
  [[nodiscard]] PageFacts facts_of(format::NodeId id);
  /// Adds to `facts` what is known of a page that accounts for `span` entries as its parent has it.
  void add_child(format::NodeId id, std::uint64_t span, PageFacts& facts);
  [[nodiscard]] bool is_damaged(const format::DirEntry& entry);
  /// The damages that the file's content has; remembers recipes that cannot be read.
  void name_damages(const format::DirEntry& entry, const std::string& path);
  /// Walks the parts of a version that `wanted` asks for, until `visit` returns false.
  void walk(const catalog::VersionRecord& version,
            const std::function<bool(const PageFacts&)>& wanted, const Visit& visit);
  void name_affected(const catalog::VersionRecord& version);
  void check_links(const catalog::VersionRecord& version);
  [[nodiscard]] std::size_t damage(std::string what);
  void affect(std::size_t report_index, std::string name);

  const meta::Env& catalog_;
  const catalog::SeriesRecord& series_;
  const std::string catalog_path_;
  const std::vector<DamagedChunks>& damaged_;
  CheckReport& report_;
  catalog::ObjectReader objects_;
  base::IdRuns all_damaged_;
  std::unordered_map<std::uint64_t, PageFacts> facts_;
  std::unordered_map<std::uint64_t, std::size_t> broken_pages_;    // Their place in the report.
  std::unordered_map<std::uint64_t, std::size_t> broken_recipes_;  // The same.
  std::unordered_set<std::uint64_t> recipes_;  // Sound, and touched by no damage.
};

}  // namespace varve::maintain
