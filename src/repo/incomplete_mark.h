// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "varve/backup.h"
#include "varve/result.h"

namespace varve::repo {

/// Marks an open version as incomplete if the store into the version had problems. Without
/// problems, removes the mark of an earlier store, or the mark inherited from the base of a clone.
/// See VersionInfo::problems. Errors: as VersionWriter::set_xattr().
[[nodiscard]] Result<void> mark_problems(VersionWriter& writer, std::uint64_t problems);

}  // namespace varve::repo
