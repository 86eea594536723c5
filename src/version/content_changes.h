// SPDX-License-Identifier: Apache-2.0
// Compares the contents of two files of one series by the files' recipes, and lists a file's
// chunks.
#pragma once

#include <cstdint>

#include "format/recipe.h"
#include "layout/layout.h"
#include "restore/recipe_index.h"
#include "varve/browse.h"
#include "varve/result.h"

namespace varve::version {

/// Implements VersionReader::list_changes(). Both recipes belong to `source`. Reads at most one
/// container for each pair of overlapping runs.
[[nodiscard]] Result<void> list_changes(layout::ChunkSource& source, const format::Recipe& now,
                                        const format::Recipe& before,
                                        const VersionReader::RangeVisitor& visit);

/// Implements VersionReader::list_chunks().
[[nodiscard]] Result<void> list_chunks(layout::ChunkSource& source, restore::RecipeIndex& recipe,
                                       const FileRange& range,
                                       const VersionReader::ChunkVisitor& visit);

}  // namespace varve::version
