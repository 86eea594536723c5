// SPDX-License-Identifier: Apache-2.0
// The metadata of archive members, in the forms of a version.
#pragma once

#include <string>

#include "transfer/problem_list.h"
#include "varve/backup.h"
#include "varve/result.h"

struct archive_entry;

namespace varve::transfer {

/// The metadata of one member.
struct MemberMetadata {
  NewFile file;
  Timestamp mtime;
};

/// Returns a member's metadata. Reports what a version cannot have to `problems`, under `path`.
/// Errors: kInvalid for a number that no file can have.
[[nodiscard]] Result<MemberMetadata> metadata_of(archive_entry* entry, const std::string& path,
                                                 ProblemList& problems);

}  // namespace varve::transfer
