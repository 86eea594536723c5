// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "catalog/series_catalog.h"
#include "series/manifests.h"
#include "series/series_parts.h"
#include "series/version_records.h"
#include "varve/backup.h"
#include "varve/result.h"

namespace varve::series {

class LineageOpen;
class Readers;
struct LineageStore;

/// The caller's choices for a seal.
struct SealRequest {
  /// The sealed version's name; "" keeps the open version's name, without ".partial".
  std::string name;
  SealMode mode = SealMode::kEnd;
  SealWriters writers = SealWriters::kRefuse;
  bool may_replace = false;  ///< The seal of a reopened version takes the old version's name.
};

struct SealResult {
  SealOutcome outcome;
  /// The version whose name the sealed version took. To be deleted by the caller.
  std::optional<VersionNumber> replaced;
};

/// Returns the name of a replaced version between the replacing seal and the version's deletion.
[[nodiscard]] std::string replaced_name(const std::string& name, VersionNumber number);

/// Seals the loaded open version of a series. The caller holds the series' mutex.
class VersionSeal {
 public:
  /// Lifetime: the arguments outlive the object.
  VersionSeal(const SeriesParts& parts, LineageStore& store, Manifests& manifests,
              LineageOpen& open, Readers& readers)
      : parts_(parts),
        store_(store),
        manifests_(manifests),
        records_(*parts.catalog, parts.id),
        open_(open),
        readers_(readers) {}

  /// Seals the version of `record`. On error the version stays open, unchanged.
  /// Errors: kBusy for files open for writing; errors of the name; kNotPermitted if the version to
  /// replace is locked; kNoSpace.
  [[nodiscard]] Result<SealResult> run(catalog::VersionRecord record, const SealRequest& how);

 private:
  /// The stored tree of the sealed version, and the version's references.
  struct Built;
  /// Stores the tree's objects, and takes the tree's references from the version's changes where
  /// possible.
  [[nodiscard]] Result<Built> build(const catalog::VersionRecord& record);
  [[nodiscard]] Result<Built> build(const catalog::VersionRecord& record, bool count_changes);
  /// Writes everything and commits. `next`: the open version that continues, or null; gets its
  /// number here. `replaced`: a record renamed in the same commit, or null.
  [[nodiscard]] Result<void> commit(catalog::VersionRecord& record, catalog::VersionRecord* next,
                                    const catalog::VersionRecord* replaced, SealOutcome& outcome);

  const SeriesParts& parts_;
  LineageStore& store_;
  Manifests& manifests_;
  const VersionRecords records_;
  LineageOpen& open_;
  Readers& readers_;
};

}  // namespace varve::series
