// SPDX-License-Identifier: Apache-2.0
// Separates the files of two histories of a repository while the catalog is rebuilt.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/id_runs.h"
#include "base/ids.h"
#include "format/birth_mark.h"
#include "format/container_keys.h"
#include "maintain/container_scan.h"
#include "meta/lmdb.h"
#include "store/segment_store.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::maintain {

/// The births of one store. A folder can have files of two histories: after writes to an older
/// state of a repository, or after an interrupted copy of another state over the repository. The
/// two histories give the same ids to different chunks, so a version may only use the containers of
/// its own history. For each birth, the mark with the most raw bytes in containers counts: among
/// the marks named by manifests, or among all marks if no manifest names the birth. Not
/// thread-safe.
class StoreBirths {
 public:
  /// Notes births named by a manifest. Called before choose().
  void note(const format::Births& births);
  /// Removes from `scan` the runs whose mark is not the chosen mark of the birth, and containers
  /// without any remaining run. Returns a text for each birth with removed runs. Runs found only by
  /// a search are not reported, because a search also finds parts of stored files.
  [[nodiscard]] std::vector<std::string> choose(ContainerScan& scan);

  /// Returns the difference between the births of a version and the births of the containers; "" if
  /// the marks show no difference.
  [[nodiscard]] std::string fault_of(const format::Births& births) const;
  /// Adds the births named by a version without a fault. The records of the versions that stored
  /// the chunks take precedence.
  void add(const format::Births& births, SeriesId series, VersionNumber version);
  /// Notes that the containers have chunks with another digest than this birth.
  void reject(VersionNumber number, const format::Birth& birth) { rejected_[number] = birth; }
  /// Returns whether an alias between chunks of `birth`, from a file that names `births`, belongs
  /// to the chosen history, as far as the marks tell.
  [[nodiscard]] bool may_be(const format::Births& births, VersionNumber birth) const;
  /// Stores the records of the births of a store, and commits.
  [[nodiscard]] Result<void> put(const meta::Env& catalog, StoreId store) const;

 private:
  /// Returns the mark of a birth; null if unknown.
  [[nodiscard]] const format::BirthMark* mark_of(VersionNumber birth) const;

  std::map<VersionNumber, std::set<format::BirthMark>> noted_;
  format::BirthMarks chosen_;  // By containers.
  format::Births named_;       // By versions.
  format::Births rejected_;
};

/// A run of chunks in the table of a container.
/// Lifetime: the container outlives the run.
struct FoundRun {
  const FoundContainer* found = nullptr;
  std::size_t index = 0;  ///< Index of the run in the container.

  [[nodiscard]] const catalog::LocationRecord& place() const { return found->runs[index]; }
};
/// The runs of all containers of a store, by birth.
using RunsByBirth = std::map<VersionNumber, std::vector<FoundRun>>;
/// Lifetime: the scan outlives the runs, and does not change meanwhile.
[[nodiscard]] RunsByBirth runs_by_birth(const ContainerScan& scan);

/// A store with the runs of the store's containers and the store's births.
/// Lifetime: the referents outlive the users of the object.
struct ScannedStore {
  store::SegmentStore& store;
  StoreId id{};
  const RunsByBirth& runs;
  StoreBirths& births;
};

/// The births of a sealed version, read from the manifest.
struct VersionBirths {
  SeriesId series{};
  VersionNumber number{};
  format::Births births{};
  base::IdRuns chunks{};  ///< Chunks referred to by the version.
};

/// Compares the births of a version with the containers: the marks, and the digests of the births
/// whose chunks the version stored itself. A digest is not compared if a chunk has no container or
/// only an unreadable container. Returns a text about the difference; otherwise adds the births to
/// the births of the stores and returns "". The caller passes older versions first.
[[nodiscard]] Result<std::string> check_births(const format::ContainerKeys* keys,
                                               const VersionBirths& version,
                                               const ScannedStore& own, const ScannedStore& pool);

}  // namespace varve::maintain
