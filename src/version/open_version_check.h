// SPDX-License-Identifier: Apache-2.0
// Reads all data of an open version's staging folder.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "crypto/key_ring.h"
#include "io/file_system.h"
#include "meta/lmdb.h"
#include "varve/result.h"
#include "version/staging_file.h"

namespace varve::version {

/// Identity of the open version to read.
struct StagedVersion {
  std::string staging_directory;  ///< REPO/staging/SERIES-NUMBER.
  SeriesId series{};
  VersionNumber number{};
  std::shared_ptr<const crypto::KeyRing> keys;  ///< Null in a plain repository.
  Ino base_end = 0;                             ///< As for decode_open_inode().
};

/// Opens the overlay of an open version for reading. Returns nullopt without an overlay. Another
/// process may write to the version meanwhile; the calling process must not have the version open.
/// Errors: errors of the file system; kCorrupt if the overlay does not open.
[[nodiscard]] Result<std::optional<meta::Env>> open_overlay_to_read(io::FileSystem& files,
                                                                    const StagedVersion& version);

/// The state of an open version as of its last checkpoint.
struct StagedState {
  std::vector<std::string> faults;  ///< Unreadable records and staging files.
};

/// Reads all records of the overlay and all staged bytes. Another process may write to the version
/// meanwhile; the calling process must not have the version open. Reports no fault of pages
/// (meta/page_check.h).
/// Errors: errors of the file system; kCorrupt if the overlay does not open.
[[nodiscard]] Result<StagedState> read_staged_state(io::FileSystem& files,
                                                    const StagedVersion& version);

}  // namespace varve::version
