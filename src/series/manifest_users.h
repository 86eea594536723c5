// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <vector>

#include "catalog/object_store.h"
#include "catalog/series_catalog.h"
#include "format/dir_node.h"
#include "varve/types.h"

namespace varve::series {

/// Tells the manifests needed by a series' sealed versions. Not thread-safe. Lifetime: `objects`
/// outlives the object.
class ManifestUsers {
 public:
  /// `records` are the records of the series; `gone` are versions to leave out.
  ManifestUsers(catalog::ObjectReader& objects, const std::vector<catalog::VersionRecord>& records,
                const std::set<VersionNumber>& gone);

  [[nodiscard]] bool is_sealed(VersionNumber number) const { return root_of_.contains(number); }
  /// Returns the first sealed version after `number`; 0 if there is none.
  [[nodiscard]] VersionNumber after(VersionNumber number) const;
  /// Returns the manifests in `manifests` with an object to which version `user` refers, or may
  /// refer: all manifests if the version's tree cannot be read.
  [[nodiscard]] std::set<VersionNumber> used_by(VersionNumber user,
                                                const std::set<VersionNumber>& manifests) const;
  /// Returns the manifests in `manifests` with an object to which any version refers, or may refer.
  [[nodiscard]] std::set<VersionNumber> used(const std::set<VersionNumber>& manifests) const;

 private:
  catalog::ObjectReader& objects_;
  std::map<VersionNumber, format::NodeId> root_of_;
};

}  // namespace varve::series
