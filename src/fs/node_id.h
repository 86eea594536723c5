// SPDX-License-Identifier: Apache-2.0
// The two numbers of a file: the node id, for the kernel, and the st_ino, for programs.
#pragma once

#include <cstdint>

#include "varve/backup.h"
#include "varve/browse.h"
#include "varve/types.h"

namespace varve::fs {

/// A file's identity between the kernel and the mount. A packed node id has the slot of the series
/// or version, plus one, in bits 63..34. Bit 33 marks an inode of an open version, or of a file
/// beside the versions of a series. Bits 32..0 hold the rank, the inode number or, in a series,
/// kSeriesDirectory or kSeriesLatest.
struct NodeId {
  std::uint32_t slot = 0;
  bool open = false;
  std::uint64_t low = 0;
  bool operator==(const NodeId&) const = default;
};

inline constexpr std::uint64_t kRootNodeId = 1;  ///< FUSE_ROOT_ID; belongs to no slot.
inline constexpr std::uint64_t kSeriesDirectory = 0;
inline constexpr std::uint64_t kSeriesLatest = 1;
inline constexpr std::uint64_t kLowMax = (1ULL << 33) - 1;

/// Returns the node id as one number. `id.low` must not exceed kLowMax.
[[nodiscard]] std::uint64_t pack(const NodeId& id);
/// Returns the parts of a node id. Must not be called for kRootNodeId.
[[nodiscard]] NodeId unpack(std::uint64_t node_id);

inline constexpr std::uint64_t kRootStIno = 1;
/// Returns the generation of a series' nodes. Never 0, and the same in every mount.
[[nodiscard]] std::uint32_t generation_of(const SeriesInfo& series);
/// Returns the st_ino of a series and of its link `latest`. Both are the same in every mount.
[[nodiscard]] std::uint64_t st_ino_of_series(SeriesId series);
[[nodiscard]] std::uint64_t st_ino_of_latest(SeriesId series);
/// Returns the st_ino of a sealed entry. The st_ino is the same in every mount, also after the
/// deletion of other versions. All names of a hard-linked file (link_group != 0) share one st_ino.
[[nodiscard]] std::uint64_t st_ino_of_sealed(SeriesId series, VersionNumber number, Rank rank,
                                             std::uint64_t link_group);
/// Returns the st_ino of an open version's file. The st_ino is the same in every mount until the
/// version is sealed.
[[nodiscard]] std::uint64_t st_ino_of_open(SeriesId series, VersionNumber number, Ino ino);

}  // namespace varve::fs
