// SPDX-License-Identifier: Apache-2.0
// Tells the objects of a catalog that no rebuild brings back.
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

/// Returns those of the objects that the catalog lacks and no manifest has. A damaged object is
/// none of them: a rebuild takes its damaged record out.
/// Errors: kUnsupported for a manifest of a newer format; those of the catalog.
[[nodiscard]] Result<std::vector<BrokenObject>> find_lost_objects(
    io::FileSystem& files, const format::FrameCodec& codec, const std::string& repository_path,
    const meta::Env& catalog, std::vector<BrokenObject> broken);

/// Returns a text about a lost object: the check's damage, and the way to end it.
[[nodiscard]] std::string describe_lost_object(const Damage& damage);

}  // namespace varve::maintain
