// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace varve::transfer {

/// Why a directory with such data stays: the end of a sentence that begins with the directory.
inline constexpr const char* kRepositoryDataReason =
    "has data of a Varve repository that lacks its varve.repo, which `varve repair` may bring back";

/// Returns whether the directory has data of a repository, as `varve repair` finds data without a
/// superblock: series, the folder of all series, or the folder of one series or of the pool. The
/// directory need not be readable to the end: an unreadable part counts as no data. Follows no
/// link. `directory_fd` may be an O_PATH descriptor.
[[nodiscard]] bool has_repository_data(int directory_fd);

}  // namespace varve::transfer
