// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "meta/lmdb.h"
#include "varve/result.h"

namespace varve::meta {

/// Checks the pages of an environment before LMDB reads the pages (meta/page_check.h), because LMDB
/// keeps no checksums of pages and can die on damaged pages. For writing, all pages must be valid.
/// For reading only, a child process reads the whole damaged environment; the environment is usable
/// if the child survives. Readers of a damaged record then get the error of LMDB or of the record's
/// checksum.
/// Errors: kCorrupt if the environment cannot be used, kIo if the environment cannot be read.
///
/// Takes one pass over the file's used pages, and two more passes if pages are damaged.
[[nodiscard]] Result<void> probe_environment(const EnvFiles& files, const EnvOptions& options);

/// Returns whether a child process could read the whole environment with LMDB, which takes about 1
/// ms per MiB. A crash of the child leaves no message in the kernel's log; Varve logs a warning
/// about the crash.
[[nodiscard]] Result<bool> survives_reading(const EnvFiles& files, const EnvOptions& options);

}  // namespace varve::meta
