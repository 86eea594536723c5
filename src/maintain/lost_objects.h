// SPDX-License-Identifier: Apache-2.0
// Names the objects of a catalog that no rebuild restores.
#pragma once

#include <string>
#include <vector>

#include "format/frame_codec.h"
#include "io/file_system.h"
#include "maintain/tree_checker.h"
#include "meta/lmdb.h"
#include "varve/check.h"
#include "varve/result.h"

namespace varve::maintain {

/// Returns the objects of `broken` that the catalog lacks and no manifest has. Leaves out damaged
/// objects: a rebuild removes the damaged records.
/// Errors: kUnsupported for a manifest of a newer format; the errors of the catalog.
[[nodiscard]] Result<std::vector<BrokenObject>> find_lost_objects(
    io::FileSystem& files, const format::FrameCodec& codec, const std::string& repository_path,
    const meta::Env& catalog, std::vector<BrokenObject> broken);

/// Returns a text about a lost object: the damage found by the check, and a way to remove the
/// damage.
[[nodiscard]] std::string describe_lost_object(const Damage& damage);

/// Marks each sealed version with an unreadable part of its tree as incomplete (decision 142).
/// Walks all trees, so the caller calls it only if parts are lost. Errors: the errors of the
/// catalog.
[[nodiscard]] Result<void> mark_lost_trees(const meta::Env& catalog);

}  // namespace varve::maintain
