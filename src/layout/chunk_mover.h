// SPDX-License-Identifier: Apache-2.0
// A single step of arranging: copies chunks into new files, and locates the copies in one commit.
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
#include "layout/planned_frame.h"
#include "store/container_writer.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::format {
class PrefixCache;
}  // namespace varve::format

namespace varve::layout {

class GroupPacker;

struct MoveStep {
  std::vector<base::IdRun> chunks;  ///< Order of the chunks in the new files; each chunk once.
  base::IdRuns dropped{};           ///< Unused chunks, to be located nowhere afterwards.
  SeriesId series{};                ///< For a volume, the series of `version`.
  catalog::SegmentRole role = catalog::SegmentRole::kBase;
  VersionNumber version{};  ///< Version of the run; for a volume, the death.
  /// Whether to write a file of the active set in the form of a volume, because the file may become
  /// a volume.
  bool aside = false;
  /// Whether to copy chunks from volumes to a volume. If a source ceases to be a volume meanwhile,
  /// the step fails with kStale.
  bool coalesces = false;
  /// Frames of the chunks, in a volume whose frames have prefixes; empty for frames without, as
  /// the writer makes them.
  std::vector<PlannedFrame> frames{};
  std::uint64_t segment_bytes_max = 0;  ///< Size limit of each new file.
  /// Raw bytes to read before writing. With less, frames with chunks far apart in the new order are
  /// read more often; with more, arranging takes more memory away from the system.
  std::uint64_t batch_bytes_max = 4U << 20;
  /// In a volume, a birth with fewer raw bytes shares a container with neighbouring births, up to
  /// this size in total. So a container with several births has at most twice the size.
  std::uint64_t shared_bytes_max = 256U << 10;
  /// Whether to request the data of a batch before the first read waits: files are in a distant
  /// store.
  bool reads_ahead = false;
  /// Changes records that depend on the places of the chunks, in the same commit; may be empty.
  std::function<Result<void>(meta::WriteTxn&)> at_commit{};
  /// Called after the commit, before the first file is cut or removed; may be empty.
  std::function<void()> before_freeing{};
};

struct MoveOutcome {
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t bytes_freed = 0;         ///< Size of the removed files and of the parts cut off.
  std::vector<base::IdRun> damaged;      ///< Unreadable chunks, left in place.
  std::uint64_t damaged_containers = 0;  ///< Containers of `damaged`.
};

/// A mover serves one step. No concurrent code may move or delete chunks of the series; readers and
/// the writer of an open version may continue. A crash, or an error, before the commit leaves files
/// unknown to the catalog. The old copies are freed after the commit (docs/ORDERING.md).
///
/// Memory does not grow with the step: a batch, about 8 MiB for the writer, and some dozen bytes
/// for each chunk of the step and of the affected location runs.
class ChunkMover {
 public:
  ChunkMover(const StoreParts& store, MoveStep step);
  ChunkMover(const ChunkMover&) = delete;
  ChunkMover& operator=(const ChunkMover&) = delete;
  ~ChunkMover();

  /// kNoSpace: the disk is full, nothing has changed.
  [[nodiscard]] Result<MoveOutcome> run();

 private:
  /// Consecutive chunks of the step that are consecutive in a container, too.
  struct Piece {
    catalog::LocationRecord record;  // Record of the chunks.
    std::uint32_t skip = 0;          // Chunks of the record before the piece.
    std::uint32_t count = 0;
    std::size_t position = 0;  // Position of the first chunk in the step.
  };
  using Pieces = std::span<const Piece>;
  struct Chunk {
    Fingerprint fingerprint{};
    std::size_t offset = 0;  // Offset in bytes_.
    std::uint32_t raw_bytes = 0;
    bool present = false;
  };
  /// A location record that loses chunks, and the remaining parts of the record.
  struct Source {
    catalog::LocationRecord record;
    std::uint32_t pending = 0;  // Chunks of the step that are not read yet.
    // For each chunk of the record, while `pending` is not 0.
    std::vector<std::uint32_t> raw_bytes;
    std::vector<bool> moves;
    std::vector<catalog::LocationRecord> rest;  // Known when `pending` is 0.
    bool gives = false;                         // Whether the record loses a chunk, moved or
                                                // dropped.
  };

  [[nodiscard]] Result<void> locate();
  [[nodiscard]] Result<void> locate_dropped(const meta::Txn& txn);
  [[nodiscard]] Result<void> copy_all();
  [[nodiscard]] Result<void> copy_batches(store::ContainerWriter& writer);
  [[nodiscard]] Result<void> read_batch(Pieces batch);
  /// Requests the containers of which the step reads most.
  void announce_whole();
  /// Reads the headers of the next containers into headers_, and requests the frames of their
  /// pieces. Returns the number of requested pieces. `sorted`: pieces in order of place.
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
  std::vector<Piece> pieces_;                                      // Pieces in step order.
  std::map<ContainerNumber, format::ContainerRecord> containers_;  // Containers of the pieces.
  std::map<ChunkId, Source> sources_;                              // Records by first chunk.
  // The batch being copied.
  std::size_t position_ = 0;  // Position of the first chunk of the batch in the step.
  std::vector<Chunk> chunks_;
  std::optional<base::AlignedBuffer> bytes_;  // Mapped separately: given back after the step.
  std::size_t bytes_used_ = 0;
  std::map<ContainerNumber, format::ContainerHeader> headers_;  // Headers from read_ahead().
  const std::unique_ptr<format::PrefixCache> prefixes_;
  std::map<VersionNumber, std::uint64_t> birth_bytes_;  // Raw bytes of each birth, estimated.
  std::unique_ptr<GroupPacker> packer_;                 // If the step has frames.
  std::optional<VersionNumber> birth_;                  // Birth of the last written chunk.
  std::uint64_t container_bytes_ = 0;  // Raw bytes since the last change of container by birth.
  format::BirthMarks marks_;           // Marks of the births of all moved chunks.
  std::vector<store::WrittenContainer> written_;
  std::vector<SegmentNumber> segments_;  // New files, to be removed after a failure.
};

}  // namespace varve::layout
