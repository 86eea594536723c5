// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "meta/lmdb.h"
#include "varve/result.h"

namespace varve::meta {

/// LMDB keeps no checksums of its pages and can die on damaged ones. So they are checked before it
/// sees them (meta/page_check.h). To write, all must be right. To read only, a child process tries
/// what was found damaged: it reads the whole environment, and what that survives is good enough.
/// kCorrupt otherwise. Damage that LMDB or a record's checksum reports is left to those who read
/// the record.
///
/// Costs one pass over the file's used pages, and two more if they are damaged.
[[nodiscard]] Result<void> probe_environment(const EnvFiles& files, const EnvOptions& options);

/// Whether a child process could read the whole environment with LMDB: about 1 ms a MiB. A crash of
/// the child leaves no message in the kernel's log; a warning in Varve's says what happened.
[[nodiscard]] Result<bool> survives_reading(const EnvFiles& files, const EnvOptions& options);

}  // namespace varve::meta
