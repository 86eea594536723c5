// SPDX-License-Identifier: Apache-2.0
// The free space that statvfs(2) does not show.
#pragma once

#include <cstdint>
#include <optional>

#include "io/file_system.h"
#include "varve/result.h"

namespace varve::io {

/// Returns the free space of the file system of `directory`, whose name for messages is `path`.
///
/// Btrfs counts data only once the data is written back, and quota groups only at a commit of
/// Btrfs. So on a nearly full Btrfs, space_of() has the file system synced first. The limits of
/// quota groups count as far as the kernel tells them: it tells only root. Quotas of projects of
/// ext4 and XFS are in the answer of statvfs(2) already.
[[nodiscard]] Result<SpaceInfo> space_of(int directory, const std::string& path);

/// Returns whether the disk, or a quota, has no room for `bytes` more bytes at the end of an open
/// file. Allocates the bytes for a moment.
[[nodiscard]] bool lacks_room(int file, std::uint64_t bytes);

}  // namespace varve::io
