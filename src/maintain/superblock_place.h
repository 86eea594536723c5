// SPDX-License-Identifier: Apache-2.0
// Checks whether a superblock belongs to the repository in the folder.
#pragma once

#include <cstddef>
#include <string>

#include "format/frame_codec.h"
#include "format/superblock.h"
#include "io/file_system.h"
#include "varve/result.h"

namespace varve::maintain {

/// The file `varve.keys`, a copy of the superblock of an encrypted repository.
struct SuperblockCopy {
  std::string text;
  format::Superblock superblock;
};
/// Reads the copy in a repository's folder. The copy may belong to another repository: no key is
/// needed. Errors: kNotFound without a copy; read errors; the errors of ingest::read_superblock().
[[nodiscard]] Result<SuperblockCopy> read_superblock_copy(io::FileSystem& files,
                                                          const std::string& path);
/// Returns whether both superblocks are of one repository, encrypted or not.
[[nodiscard]] bool are_of_one_repository(const format::Superblock& a, const format::Superblock& b);

/// Checks that the whole labels in a folder belong to the superblock and to their series. A repair
/// without a catalog removes and replaces unreadable files: under the superblock of another
/// repository, all files are unreadable. `files` opens sealed files with the keys of the
/// superblock, `raw` opens all files as they are. Errors: kCorrupt if labels do not belong, or if
/// no labels can be read and `varve.keys` is the copy of another superblock.
[[nodiscard]] Result<void> check_superblock_place(io::FileSystem& raw, io::FileSystem& files,
                                                  const format::FrameCodec& codec,
                                                  const std::string& path,
                                                  const format::Superblock& superblock);

}  // namespace varve::maintain
