// SPDX-License-Identifier: Apache-2.0
// The superblock's file `varve.repo` in a repository's folder, and the copy `varve.keys` of an
// encrypted repository.
#pragma once

#include <memory>
#include <string>

#include "crypto/key_ring.h"
#include "format/superblock.h"
#include "io/file_system.h"
#include "varve/result.h"

namespace varve::store {

/// Opens the file system of a repository's folder. Errors: kNoRepository if there is no folder.
[[nodiscard]] Result<std::unique_ptr<io::FileSystem>> open_folder(const std::string& path,
                                                                  bool trust_owner);
/// Reads the text of `varve.repo`. Errors: kNoRepository if the file is missing; kCorrupt if only
/// the copy exists.
[[nodiscard]] Result<std::string> read_superblock_text(io::FileSystem& files,
                                                       const std::string& directory);

/// Writes `varve.repo`, and the copy `varve.keys` in an encrypted repository, each atomically.
/// `keys`: the repository's keys; null for a plain repository.
[[nodiscard]] Result<void> write_superblock(io::FileSystem& files, const std::string& directory,
                                            const format::Superblock& superblock,
                                            const crypto::KeyRing* keys);

/// Writes only the copy `varve.keys`. Does nothing in a plain repository.
[[nodiscard]] Result<void> write_superblock_copy(io::FileSystem& files,
                                                 const std::string& directory,
                                                 const format::Superblock& superblock,
                                                 const crypto::KeyRing* keys);

/// Writes the `varve.repo` of another folder of the same repository, and the copy if the repository
/// has keys.
[[nodiscard]] Result<void> adopt_superblock(io::FileSystem& files, const std::string& directory,
                                            const std::string& text, bool has_keys);

}  // namespace varve::store
