// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "catalog/series_catalog.h"
#include "series/manifests.h"
#include "series/series_parts.h"
#include "series/version_records.h"
#include "varve/result.h"

namespace varve::series {

class LineageOpen;
struct LineageStore;

/// A sealed version to be cloned, and its clone's name.
struct CloneSource {
  catalog::VersionRecord record;
  bool reopens = false;  ///< The clone is to take the source's place.
  std::string own_name;  ///< Name with ".partial" of a version being reopened.
};

/// Opens versions with the tree of a sealed version. The caller holds the series' mutex.
class VersionClones {
 public:
  /// Lifetime: the arguments outlive the object.
  VersionClones(const SeriesParts& parts, LineageStore& store, Manifests& manifests,
                LineageOpen& open)
      : parts_(parts),
        store_(store),
        manifests_(manifests),
        records_(*parts.catalog, parts.id),
        open_(open) {}

  /// Errors: the errors with which a clone would fail after another version was sealed.
  [[nodiscard]] Result<CloneSource> source(VersionNumber source, std::string_view name);
  /// Opens a version and copies the tree of `source` into it, entry by entry.
  [[nodiscard]] Result<VersionInfo> copy(const catalog::VersionRecord& source,
                                         std::string_view name);

 private:
  [[nodiscard]] Result<void> check_may_reopen(const catalog::VersionRecord& record);

  const SeriesParts& parts_;
  LineageStore& store_;
  Manifests& manifests_;
  const VersionRecords records_;
  LineageOpen& open_;
};

}  // namespace varve::series
