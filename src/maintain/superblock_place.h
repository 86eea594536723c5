// SPDX-License-Identifier: Apache-2.0
// Whether a superblock is that of the repository in whose folder it is.
#pragma once

#include <cstddef>
#include <string>

#include "format/frame_codec.h"
#include "format/superblock.h"
#include "io/file_system.h"
#include "varve/result.h"

namespace varve::maintain {

/// Bytes that the repair reads of a superblock at most.
inline constexpr std::size_t kSuperblockBytesMax = 64U << 10;

/// Checks that the labels in a folder that are whole belong to the superblock and to their series.
/// A repair without a catalog removes and replaces what it cannot read: under the superblock of
/// another repository, that is everything. `files` opens sealed files with the keys of the
/// superblock, `raw` opens all files as they are. Errors: kCorrupt if they do not, or if no labels
/// can be read and `varve.keys` is the copy of another superblock.
[[nodiscard]] Result<void> check_superblock_place(io::FileSystem& raw, io::FileSystem& files,
                                                  const format::FrameCodec& codec,
                                                  const std::string& path,
                                                  const format::Superblock& superblock);

}  // namespace varve::maintain
