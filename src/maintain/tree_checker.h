// SPDX-License-Identifier: Apache-2.0
// Checks whether the trees of sealed versions are readable, and names the files affected by damage.
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
#include "varve/check.h"
#include "varve/result.h"

namespace varve::maintain {

/// The chunks of one damage in the report.
struct DamagedChunks {
  std::size_t report_index = 0;
  base::IdRuns ids;
};

/// An unreadable page or recipe.
struct BrokenObject {
  SeriesId series{};
  format::NodeId id{};
  bool is_recipe = false;
  std::size_t report_index = 0;  ///< Index of the damage in the report.
};

/// Checks the versions of one series. Reads each page and recipe once, even if several versions or
/// places contain the object. The time therefore does not depend on the sizes claimed by a tree.
/// Memory: about 40 bytes per page. Not thread-safe.
class TreeChecker {
 public:
  /// `damaged` must be complete. Lifetime: `damaged` and `report` must outlive the checker.
  TreeChecker(const meta::Env& catalog, const catalog::SeriesRecord& series,
              std::string catalog_path, const std::vector<DamagedChunks>& damaged,
              CheckReport& report);

  /// Adds the defects of the version's tree and record of hard links to the report. Lists the
  /// version's files affected by damaged chunks and pages, each file by all its names, up to a
  /// limit.
  void check(const catalog::VersionRecord& version);
  /// Returns the objects found unreadable by the checks so far.
  [[nodiscard]] std::vector<BrokenObject> broken() const;

 private:
  /// The facts about a page and the whole tree below the page.
  struct PageFacts {
    std::uint64_t span = 0;    ///< See format::span_of_page.
    std::uint64_t linked = 0;  ///< Names with a link group.
    bool touched = false;      ///< True if a page or file of the tree is damaged.
    bool broken = false;       ///< True if the page or a page below is damaged.
  };
  struct Place;
  using Visit = std::function<bool(const Place& place)>;

  /// Finds the facts of all pages below `root` that are not yet known.
  void learn(format::NodeId root);
  [[nodiscard]] PageFacts facts_of(format::NodeId id);
  /// Adds the facts of a child page to `facts`. `span`: the number of the child's entries according
  /// to the parent.
  void add_child(format::NodeId id, std::uint64_t span, PageFacts& facts);
  [[nodiscard]] bool is_damaged(const format::DirEntry& entry);
  /// Lists the file under each damage of the file's content. Remembers unreadable recipes.
  void name_damages(const format::DirEntry& entry, const std::string& path);
  /// Walks the parts of a version selected by `wanted`, until `visit` returns false.
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
  std::unordered_map<std::uint64_t, std::size_t> broken_pages_;  // Index in the report, by page.
  // Index in the report, by recipe.
  std::unordered_map<std::uint64_t, std::size_t> broken_recipes_;
  std::unordered_set<std::uint64_t> recipes_;  // Sound recipes without damaged chunks.
};

}  // namespace varve::maintain
