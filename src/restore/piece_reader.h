// SPDX-License-Identifier: Apache-2.0
// Reads data in disk order instead of file order. This is the original restore of MFDedup (Zou et
// al., FAST 2021, §3.4): the stored data is read from front to back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "format/recipe.h"
#include "layout/layout.h"
#include "restore/slice_reader.h"
#include "varve/browse.h"
#include "varve/result.h"

namespace varve::restore {

/// Finds the pieces as VersionReader::locate_data(). Reads the header of a container only if a run
/// continues in a further container.
[[nodiscard]] Result<void> locate_pieces(layout::ChunkSource& source, const format::Recipe& recipe,
                                         std::uint64_t offset,
                                         const VersionReader::PieceVisitor& visit);

/// Reads one sorted batch of pieces, container by container. Reads and decodes each needed frame
/// once, in ascending order. Requests the next containers from a distant store in advance. Not
/// thread-safe.
class PieceReader {
 public:
  PieceReader(layout::ChunkSource& source, const ReadMetrics& metrics)
      : source_(source), metrics_(metrics), reader_(metrics) {}

  /// Reads the pieces as VersionReader::read_pieces().
  void read(std::span<const StoredPiece> pieces, const VersionReader::PieceTaker& take);

 private:
  // The part of a piece that is in one frame.
  struct Part {
    std::uint32_t frame = 0;
    std::uint32_t frame_offset = 0;
    std::uint32_t bytes = 0;
    const StoredPiece* piece = nullptr;
    std::uint64_t offset = 0;  // Offset in the file.
  };
  using Parts = std::span<const Part>;

  using Pieces = std::span<const StoredPiece>;

  /// Takes the pieces of the first container from the front.
  [[nodiscard]] static Pieces take_container(Pieces& pieces);
  [[nodiscard]] bool wants_most(Pieces pieces);
  void announce(Pieces pieces);
  void announce_slices(Pieces pieces);
  [[nodiscard]] bool read_container(std::span<const StoredPiece> pieces,
                                    const VersionReader::PieceTaker& take);
  [[nodiscard]] bool add_parts(const format::ContainerHeader& header, const StoredPiece& piece);
  [[nodiscard]] bool read_slice(const format::ContainerHeader& header, Parts parts,
                                const VersionReader::PieceTaker& take);
  [[nodiscard]] bool read_frame(const format::ContainerHeader& header, Slice slice,
                                const SliceBytes* stored, Parts parts,
                                const VersionReader::PieceTaker& take);

  layout::ChunkSource& source_;
  const ReadMetrics& metrics_;
  SliceReader reader_;
  std::vector<Part> parts_;   // Parts in the present container.
  SealedWindows::Plan plan_;  // Windows of `parts_`.
  std::vector<std::byte> stored_;
  std::vector<std::byte> raw_;
};

}  // namespace varve::restore
