// SPDX-License-Identifier: Apache-2.0
// Tells a catalog of another state than the rest of the repository.
#pragma once

#include <string>

#include "format/frame_codec.h"
#include "io/file_system.h"
#include "meta/lmdb.h"
#include "varve/result.h"

namespace varve::maintain {

/// How a catalog compares with labels and the numbers of manifests.
struct CatalogAge {
  /// True if labels of a series mirror another catalog, or a later state of this catalog, or if a
  /// manifest has a number that the catalog has not given yet. Labels of a catalog replaced by this
  /// catalog are older.
  bool is_older = false;
  /// True if the labels list as many versions as the catalog.
  bool has_labelled_versions = false;
};

/// Compares a catalog with the labels and manifests of all series. Ignores unreadable labels. Reads
/// labels and manifests before the catalog, so a writer may be active.
/// Errors: kUnsupported for labels of a newer format.
[[nodiscard]] Result<CatalogAge> age_of_catalog(io::FileSystem& files,
                                                const format::FrameCodec& codec,
                                                const std::string& repository_path,
                                                const meta::Env& catalog);

}  // namespace varve::maintain
