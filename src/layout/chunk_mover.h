// SPDX-License-Identifier: Apache-2.0
// One step of arranging: copies chunks into new files, and locates them there in one commit.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/id_runs.h"
#include "base/ids.h"
#include "layout/chunk_stream.h"
#include "store/container_writer.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::layout {

struct MoveStep {
  std::vector<base::IdRun> chunks;  ///< In the order in which they shall lie; each once.
  base::IdRuns dropped{};  ///< Chunks that nothing uses, and that are located nowhere afterwards.
  SeriesId series{};       ///< For a volume, the series of `version`.
  catalog::SegmentRole role = catalog::SegmentRole::kBase;
  VersionNumber version{};  ///< Version of the run; for a volume, the death.
  /// True to write a file of the active set in the form of a volume, which it may become.
  bool aside = false;
  /// True to copy chunks from volumes to a volume. If a source ceases to be a volume meanwhile, the
  /// step fails with kStale.
  bool coalesces = false;
  std::uint64_t segment_bytes_max = 0;  ///< Size limit of each new file.
  /// Raw bytes that are read before they are written. With less, frames whose chunks lie far apart
  /// in the new order are read more often; with more, arranging takes memory that others need.
  std::uint64_t batch_bytes_max = 4U << 20;
  /// In a volume, a birth with fewer raw bytes shares a container with its neighbours, until they
  /// have as many together. So a container with several births has at most twice as much.
  std::uint64_t shared_bytes_max = 256U << 10;
  /// True to request what a batch reads before the first read waits: files are in a distant store.
  bool reads_ahead = false;
  /// Changes records that depend on the places of the chunks, in the same commit; may be empty.
  std::function<Result<void>(meta::WriteTxn&)> at_commit{};
  /// Called after the commit, before the first file is cut or removed; may be empty.
  std::function<void()> before_freeing{};
};

struct MoveOutcome {
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t bytes_freed = 0;     ///< Size of the removed files and of the parts cut off.
  std::vector<base::IdRun> damaged;  ///< Could not be read, and stay where they are.
};

/// Made for one step. Nothing else may move or delete chunks of the series meanwhile; readers
/// and the writer of an open version may go on. A crash, or an error, before the commit leaves
/// files that the catalog does not know; the old copies are freed after it (docs/ORDERING.md).
///
/// Memory does not grow with the step: a batch, 8 MiB or so of the writer, and some dozen bytes for
/// each chunk of the step and of the location runs it takes from.
class ChunkMover {
 public:
  ChunkMover(const StoreParts& store, MoveStep step);

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
  using Pieces = std::span<const Piece>;
  struct Chunk {
    Fingerprint fingerprint{};
    std::size_t offset = 0;  // In bytes_.
    std::uint32_t raw_bytes = 0;
    bool present = false;
  };
  /// A location record that gives chunks up, and what stays of it.
  struct Source {
    catalog::LocationRecord record;
    std::uint32_t pending = 0;  // Chunks of the step that are not read yet.
    // Of each chunk of the record, while some are pending.
    std::vector<std::uint32_t> raw_bytes;
    std::vector<bool> moves;
    std::vector<catalog::LocationRecord> rest;  // Known when none is pending.
    bool gives = false;                         // At least one chunk, or drops some.
  };

  [[nodiscard]] Result<void> locate();
  [[nodiscard]] Result<void> locate_dropped(const meta::Txn& txn);
  [[nodiscard]] Result<void> copy_all();
  [[nodiscard]] Result<void> copy_batches(store::ContainerWriter& writer);
  [[nodiscard]] Result<void> read_batch(Pieces batch);
  /// Requests the containers of which the step reads most.
  void announce_whole();
  /// Reads the headers of the next containers into headers_, and requests the frames of their
  /// pieces. Returns the number of these pieces, which are sorted by their place.
  [[nodiscard]] std::size_t read_ahead(Pieces sorted);
  void announce_frames(const format::ContainerRecord& record, const format::ContainerHeader& header,
                       Pieces pieces);
  [[nodiscard]] Result<void> read_container(const format::ContainerRecord& record, Pieces pieces);
  [[nodiscard]] Result<void> read_frames(const format::ContainerRecord& record,
                                         const format::ContainerHeader& header, Pieces pieces);
  void reserve(std::size_t bytes);
  void note_read(const format::ContainerHeader& header, Pieces pieces);
  void note_done(Source& source, std::uint32_t chunks) const;
  [[nodiscard]] Result<void> write_batch(store::ContainerWriter& writer);
  [[nodiscard]] bool ends_container(VersionNumber birth) const;
  [[nodiscard]] Result<void> check_death(const meta::Txn& txn) const;
  [[nodiscard]] Result<void> check_sources(const meta::Txn& txn) const;
  [[nodiscard]] Result<void> commit();
  void drop_written();
  void give_up(const Piece& piece);

  const StoreParts store_;
  const MoveStep step_;
  MoveOutcome outcome_;
  std::vector<ChunkId> ids_;
  std::vector<Piece> pieces_;                                      // In the order of the step.
  std::map<ContainerNumber, format::ContainerRecord> containers_;  // That they are in.
  std::map<ChunkId, Source> sources_;                              // By the record's first chunk.
  // The batch that is being copied.
  std::size_t position_ = 0;  // Of its first chunk in the step.
  std::vector<Chunk> chunks_;
  std::optional<base::AlignedBuffer> bytes_;  // Mapped by itself: given back after the step.
  std::size_t bytes_used_ = 0;
  std::map<ContainerNumber, format::ContainerHeader> headers_;  // Those of read_ahead().
  std::map<VersionNumber, std::uint64_t> birth_bytes_;  // Raw bytes of each birth, estimated.
  std::optional<VersionNumber> birth_;                  // Of the chunk that was written last.
  std::uint64_t container_bytes_ = 0;  // Raw bytes since the last change of container by birth.
  format::BirthMarks marks_;           // Of the births of all chunks that move.
  std::vector<store::WrittenContainer> written_;
  std::vector<SegmentNumber> segments_;  // That were begun and may have to go again.
};

}  // namespace varve::layout
