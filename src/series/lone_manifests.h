// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/id_runs.h"
#include "catalog/object_store.h"
#include "catalog/series_catalog.h"
#include "format/manifest_size.h"
#include "meta/lmdb.h"
#include "series/manifest_users.h"
#include "series/manifests.h"
#include "series/series_parts.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::series {

/// Measures by how much manifests and labels shrink if one version alone is deleted, for many
/// versions one after the other. Gives the bytes of Manifests::dead(), but lists all versions once
/// instead of for each call. Not thread-safe. Lifetime: the arguments of open() outlive the object.
class LoneManifests {
 public:
  /// `records` are the series' records in `txn`.
  [[nodiscard]] static Result<std::unique_ptr<LoneManifests>> open(
      const SeriesParts& parts, const meta::Txn& txn,
      const std::vector<catalog::VersionRecord>& records);

  /// Returns the bytes for a sealed version. `open` has the chunks that the labels will list for
  /// open versions, if the deletion changes the lists.
  [[nodiscard]] std::uint64_t bytes(VersionNumber number, const OpenChunks& open);

 private:
  LoneManifests(const SeriesParts& parts, const std::vector<catalog::VersionRecord>& records)
      : parts_(parts), objects_(*parts.catalog, parts.id), users_(objects_, records, {}) {}
  /// Manifests needed by no version.
  struct Unused {
    std::uint64_t files = 0;
    std::uint64_t bytes = 0;
  };
  /// Returns the subset of `manifests` needed by no version, if `user` is the next version.
  [[nodiscard]] Unused unused_of(VersionNumber user,
                                 const std::set<VersionNumber>& manifests) const;
  /// `removed`: the number of deletions that the labels will note.
  [[nodiscard]] std::uint64_t labels_after(VersionNumber number, const OpenChunks& open,
                                           std::uint64_t removed);
  [[nodiscard]] std::string labels_path() const;

  struct Label {
    std::uint32_t version = 0;  // 0: of the series.
    bool chunks = false;
    std::size_t key_bytes = 0;
    std::size_t value_bytes = 0;
  };
  const SeriesParts& parts_;
  catalog::ObjectReader objects_;
  const ManifestUsers users_;
  std::map<VersionNumber, std::uint64_t> sizes_;
  /// The manifests of deleted versions, by the next sealed version.
  std::map<VersionNumber, std::set<VersionNumber>> deleted_;
  std::map<VersionNumber, Unused> unused_;  // Unused manifests in `deleted_`, by the same key.
  Unused unused_in_all_;
  std::uint64_t deleted_in_all_ = 0;
  std::vector<Label> labels_;
  format::ManifestSize labels_size_;
  std::optional<std::uint64_t> labels_now_;  // Length of the labels; nullopt if there are none.
};

}  // namespace varve::series
