// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "meta/lmdb.h"
#include "varve/result.h"

namespace varve::meta {

/// LMDB keeps no checksums of its pages and can die on damaged ones. This reads the whole
/// environment in a child process, and returns kCorrupt if that did not survive it. Damage
/// that LMDB or a record's checksum reports is left to those who read the record.
///
/// Costs one pass over the file: about 1 ms a MiB.
[[nodiscard]] Result<void> probe_environment(const std::string& directory,
                                             const EnvOptions& options);

}  // namespace varve::meta
