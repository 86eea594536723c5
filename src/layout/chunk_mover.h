// SPDX-License-Identifier: Apache-2.0
// One step of arranging: copies chunks into new files, and locates them there in one commit.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/id_runs.h"
#include "layout/category_layout.h"
#include "store/container_writer.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::layout {

struct MoveStep {
  std::vector<base::IdRun> chunks;  ///< In the order in which they shall lie; each once.
  catalog::SegmentRole role = catalog::SegmentRole::kBase;
  VersionNumber version{};              ///< Of the run; of a volume, the death.
  std::uint64_t segment_bytes_max = 0;  ///< Of the files written.
};

struct MoveOutcome {
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t bytes_freed = 0;     ///< Of files that nothing needed any more.
  std::vector<base::IdRun> damaged;  ///< Could not be read, and stay where they are.
};

/// Made for one step. Nothing else may move or delete chunks of the series meanwhile; readers
/// and the writer of an open version may go on. A crash, or an error, before the commit leaves
/// files that the catalog does not know; the old copies are freed after it (docs/ORDERING.md).
class ChunkMover {
 public:
  ChunkMover(CategoryLayout& layout, MoveStep step);

  /// kNoSpace: the disk is full, nothing has changed.
  [[nodiscard]] Result<MoveOutcome> run();

 private:
  /// Consecutive chunks of the step that stand one after the other in a container.
  struct Piece {
    catalog::LocationRecord record;  // That they belong to.
    std::uint32_t skip = 0;          // Chunks of the record before the piece.
    std::uint32_t count = 0;
    std::size_t position = 0;  // Of the first one in the step.
  };
  struct Chunk {
    Fingerprint fingerprint{};
    std::size_t offset = 0;  // In bytes_.
    std::uint32_t raw_bytes = 0;
    bool present = false;
  };
  /// A location record that gives chunks up, and what stays of it.
  struct Source {
    catalog::LocationRecord record;
    std::vector<catalog::LocationRecord> rest;
  };

  [[nodiscard]] Result<void> locate();
  [[nodiscard]] Result<void> read_all();
  [[nodiscard]] Result<void> read_container(const store::ContainerRecord& record,
                                            const std::vector<Piece>& pieces);
  void read_frames(const store::ContainerRecord& record, const format::ContainerHead& head,
                   const std::vector<Piece>& pieces);
  void note_rest(const format::ContainerHead& head, const std::vector<Piece>& pieces);
  [[nodiscard]] Result<void> write_all();
  [[nodiscard]] Result<void> fill(store::ContainerWriter& writer);
  [[nodiscard]] Result<void> commit();
  void drop_written();
  void give_up(const Piece& piece);

  CategoryLayout& layout_;
  const MoveStep step_;
  MoveOutcome outcome_;
  std::map<std::uint32_t, std::vector<Piece>> pieces_of_;  // By container.
  std::vector<ChunkId> ids_;
  std::vector<Chunk> chunks_;
  std::vector<std::byte> bytes_;
  std::vector<Source> sources_;
  std::vector<store::WrittenContainer> written_;
  std::vector<std::uint32_t> segments_;  // That were begun and may have to go again.
};

}  // namespace varve::layout
