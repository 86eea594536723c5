// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "varve/backup.h"
#include "varve/result.h"

namespace varve::repo {

/// Marks an open version as incomplete if its store had problems, and otherwise removes the mark
/// of an earlier store of this version, or of the version that this one is a clone of. See
/// VersionInfo::problems. Errors: those of VersionWriter::set_xattr().
[[nodiscard]] Result<void> mark_problems(VersionWriter& writer, std::uint64_t problems);

}  // namespace varve::repo
