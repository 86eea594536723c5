// SPDX-License-Identifier: Apache-2.0
// Takes the content of a lost manifest from a catalog.
#pragma once

#include <optional>
#include <string>

#include "catalog/series_catalog.h"
#include "format/birth_mark.h"
#include "meta/lmdb.h"
#include "varve/result.h"

namespace varve::maintain {

/// The records that a manifest has beside the objects of its version.
struct ManifestRecords {
  std::string chunks;                ///< As in the table `version_chunks`.
  std::optional<std::string> links;  ///< As in the table `version_links`.
  format::Births births;
};

/// Copies the pages and recipes stored by a sealed version from the catalog `from` to the catalog
/// `to`, and returns the other records of the version's manifest. Returns nullopt if `from` lacks
/// the version, has another seal, or lacks a part of the tree that `to` lacks, too. An older
/// catalog serves as well as the newest: the records of a sealed version never change. Errors: the
/// errors of the catalogs.
[[nodiscard]] Result<std::optional<ManifestRecords>> copy_version(
    const meta::Env& from, const meta::Env& to, const catalog::VersionRecord& version);

}  // namespace varve::maintain
