// SPDX-License-Identifier: Apache-2.0
// Tells the files of two histories of a repository apart while its catalog is rebuilt.
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

/// The births of one store. An older state of a repository that was written to, and an interrupted
/// copy of another state over it, give a folder with files of both. They name different chunks by
/// the same ids, so a version may only be used with the containers of its own history. Of each
/// birth, the containers with most raw bytes count, of those whose mark a manifest names. Not
/// thread-safe.
class StoreBirths {
 public:
  /// Notes the births that a manifest names, before choose().
  void note(const format::Births& births);
  /// Takes the containers out of `scan` that have another mark than the one which counts, or the
  /// runs of such births. Returns a text for each birth that has such chunks, but not for those
  /// that only a search found: it also finds parts of stored files.
  [[nodiscard]] std::vector<std::string> choose(ContainerScan& scan);

  /// Returns how the births of a version differ from those of the containers; "" if they do not, as
  /// far as the marks tell.
  [[nodiscard]] std::string fault_of(const format::Births& births) const;
  /// Adds the births that a version names, which has no fault. The records of the versions that
  /// stored the chunks take precedence.
  void add(const format::Births& births, SeriesId series, VersionNumber version);
  /// Notes that the containers have other chunks than a birth with this digest.
  void reject(VersionNumber number, const format::Birth& birth) { rejected_[number] = birth; }
  /// Returns whether an alias between these chunks, from a file that names `births`, is one of this
  /// history, as far as the marks tell.
  [[nodiscard]] bool may_be(const format::Births& births, VersionNumber birth) const;
  /// Stores the records of the births of a store, and commits.
  [[nodiscard]] Result<void> put(const meta::Env& catalog, StoreId store) const;

 private:
  /// Returns the mark of a birth; null if nothing tells it.
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
/// The runs of all containers of a store, by the birth of their chunks.
using RunsByBirth = std::map<VersionNumber, std::vector<FoundRun>>;
/// Lifetime: the scan outlives the runs, and does not change meanwhile.
[[nodiscard]] RunsByBirth runs_by_birth(const ContainerScan& scan);

/// A store with the runs of its containers and its births.
/// Lifetime: the referents outlive the users of the object.
struct ScannedStore {
  store::SegmentStore& store;
  StoreId id{};
  const RunsByBirth& runs;
  StoreBirths& births;
};

/// A sealed version by its manifest.
struct VersionBirths {
  SeriesId series{};
  VersionNumber number{};
  format::Births births{};
  base::IdRuns chunks{};  ///< Those to which it refers.
};

/// Compares the births of a version with the containers: their marks, and the digests of those
/// births whose chunks the version stored itself. A digest stays open if a chunk has no container
/// or only one that cannot be read. Returns how they differ, or adds the births to the stores'
/// and returns "". Call it for older versions first.
[[nodiscard]] Result<std::string> check_births(const format::ContainerKeys* keys,
                                               const VersionBirths& version,
                                               const ScannedStore& own, const ScannedStore& pool);

}  // namespace varve::maintain
