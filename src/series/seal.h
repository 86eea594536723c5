// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "catalog/chunk_references.h"
#include "catalog/series_catalog.h"
#include "series/lineage_open.h"
#include "series/lineage_store.h"
#include "series/manifests.h"
#include "series/readers.h"
#include "series/series_parts.h"
#include "series/version_records.h"
#include "varve/backup.h"
#include "varve/result.h"
#include "version/sealer.h"

namespace varve::series {

/// The caller's choices for a seal.
struct SealRequest {
  std::string name;  ///< The sealed version's name; "" keeps its name, without ".partial".
  SealMode mode = SealMode::kEnd;
  SealWriters writers = SealWriters::kRefuse;
  bool may_replace = false;  ///< The seal of a reopened version takes the name of the old one.
};

struct SealResult {
  SealOutcome outcome;
  /// The version that lost its name to the sealed one. The caller deletes it.
  std::optional<VersionNumber> replaced;
};

/// Returns the name of a version between the seal that takes its name and its deletion.
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

  /// Seals the version of `record`. On error the version is open as before.
  /// Errors: kBusy for files that are open for writing; those of the name; kNotPermitted if the
  /// version that it would replace is locked; kNoSpace.
  [[nodiscard]] Result<SealResult> run(catalog::VersionRecord record, const SealRequest& how);

 private:
  /// Stores the tree's objects, and takes its references from its changes where possible.
  struct Built {
    version::SealedTree tree;
    catalog::VersionReferences references;
    std::uint64_t objects = 0;  ///< Number of new objects.
  };
  [[nodiscard]] Result<Built> build(const catalog::VersionRecord& record);
  [[nodiscard]] Result<Built> build(const catalog::VersionRecord& record, bool count_changes);
  /// Writes everything and commits. `next`: the open version that continues, or null; gets its
  /// number here. `replaced`: a record that gets another name in this commit, or null.
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
