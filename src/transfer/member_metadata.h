// SPDX-License-Identifier: Apache-2.0
// The metadata of archive members, in the forms of a version.
#pragma once

#include <string>

#include "transfer/problem_list.h"
#include "varve/backup.h"
#include "varve/result.h"

struct archive_entry;

namespace varve::transfer {

/// The metadata of a member.
struct MemberMetadata {
  NewFile file;
  Timestamp mtime;
};

/// Returns a member's metadata. Reports metadata impossible in a version to `problems`, under
/// `path`.
/// Errors: kInvalid for a number impossible for a file.
[[nodiscard]] Result<MemberMetadata> metadata_of(archive_entry* entry, const std::string& path,
                                                 ProblemList& problems);

}  // namespace varve::transfer
