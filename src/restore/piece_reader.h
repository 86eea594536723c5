// SPDX-License-Identifier: Apache-2.0
// Data in the order of the disk instead of that of the files: the original restore of MFDedup
// (Zou et al., FAST 2021, §3.4), which reads what is stored from front to back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "format/recipe.h"
#include "layout/layout.h"
#include "restore/slice_reader.h"
#include "varve/result.h"
#include "varve/version_reader.h"

namespace varve::restore {

/// As VersionReader::locate_data(). Headers of containers are only read where a run goes on in
/// another container.
[[nodiscard]] Result<void> locate_pieces(layout::ChunkSource& source, const format::Recipe& recipe,
                                         std::uint64_t offset,
                                         const VersionReader::PieceVisitor& visit);

/// Reads one sorted batch of pieces: a container at a time, its needed frames in ascending order,
/// each read and decoded once. Not synchronised.
class PieceReader {
 public:
  explicit PieceReader(layout::ChunkSource& source) : source_(source) {}

  /// As VersionReader::read_pieces().
  void read(std::span<const StoredPiece> pieces, const VersionReader::PieceTaker& take);

 private:
  // The part of a piece that is in one frame.
  struct Part {
    std::uint32_t frame = 0;
    std::uint32_t frame_offset = 0;
    std::uint32_t bytes = 0;
    const StoredPiece* piece = nullptr;
    std::uint64_t offset = 0;  // In the file.
  };
  using Parts = std::span<const Part>;

  [[nodiscard]] bool read_container(std::span<const StoredPiece> pieces,
                                    const VersionReader::PieceTaker& take);
  [[nodiscard]] bool add_parts(const format::ContainerHeader& header, const StoredPiece& piece);
  [[nodiscard]] bool read_slice(const format::ContainerHeader& header, Parts parts,
                                const VersionReader::PieceTaker& take);
  [[nodiscard]] bool read_frame(const format::ContainerHeader& header, Slice slice,
                                std::span<const std::byte> stored, Parts parts,
                                const VersionReader::PieceTaker& take);

  layout::ChunkSource& source_;
  SliceReader reader_;
  std::vector<Part> parts_;  // Of the container that is being read.
  std::vector<std::byte> stored_;
  std::vector<std::byte> raw_;
};

}  // namespace varve::restore
