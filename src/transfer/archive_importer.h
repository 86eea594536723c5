// SPDX-License-Identifier: Apache-2.0
// Stores streams in an open version.
#pragma once

#include <functional>
#include <string>

#include "varve/backup.h"
#include "varve/result.h"

namespace varve::transfer {

/// Stores the members of the archive in `fd`, as varve::store_stream() does.
[[nodiscard]] Result<TransferReport> import_archive(
    VersionWriter& version, int fd, const std::function<bool(const TransferProgress&)>& progress);

/// Stores all bytes of `fd` in a single file. Creates the directories above the file. Only the
/// owner may read the file.
[[nodiscard]] Result<TransferReport> import_stream(
    VersionWriter& version, const std::string& path, int fd,
    const std::function<bool(const TransferProgress&)>& progress);

/// Errors: kInvalid unless `path` can be the path of a file below a version.
[[nodiscard]] Result<void> check_stream_path(const std::string& path);

}  // namespace varve::transfer
