// SPDX-License-Identifier: Apache-2.0
// The pipeline from bytes to recipes: chunk -> fingerprint -> look up -> place.
//
// The writing thread copies bytes into buffers and cuts the bytes into chunks. A pool computes the
// SHA-256 of whole batches in parallel. The pipeline then commits the batches in the order of
// submission, so ids follow the order of writing.
//
// A deduplication policy may need to see the chunks after a batch before deciding about the batch
// (DedupPolicy::look_ahead_bytes()). The pipeline then looks batches up early, in order, and
// commits a batch when enough batches follow. The pipeline never waits for data that may not come:
// if a call waits for a batch, or memory is full, the pipeline commits the batch with the
// look-ahead available by then.
//
// Memory is bounded for any number and size of files. kInFlightBytesMax bounds the batches in
// flight. kIdleBytesMax bounds the buffers of idle streams: above the bound, the pipeline cuts the
// longest idle stream, and then moves the stream's tail to the spill file.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/thread_pool.h"
#include "format/fingerprinter.h"
#include "format/recipe.h"
#include "index/fingerprint_index.h"
#include "ingest/chunker.h"
#include "ingest/dedup_policy.h"
#include "ingest/ingest_metrics.h"
#include "ingest/placed_marks.h"
#include "ingest/tail_spill.h"
#include "layout/layout.h"
#include "varve/result.h"

namespace varve::ingest {

/// A file's content: chunks, then bytes not yet cut.
struct Content {
  format::Recipe recipe;
  std::vector<std::byte> tail;
  [[nodiscard]] std::uint64_t bytes() const { return recipe.bytes() + tail.size(); }
};

class IngestPipeline;

/// One file being written from front to back. IngestPipeline::start() creates the stream, and
/// callers use the stream through the pipeline.
/// Lifetime: the pipeline keeps the stream alive while work is in flight.
class IngestStream {
 public:
  IngestStream() = default;

 private:
  friend class IngestPipeline;

  struct Buffer {
    std::unique_ptr<std::byte[]> data;
    std::size_t capacity = 0;
  };

  // Guarded by IngestPipeline::input_mutex_.
  Buffer buffer_;
  std::size_t used_ = 0;
  std::optional<TailSpill::Slot> spilled_;
  std::list<std::shared_ptr<IngestStream>>::iterator idle_place_;
  bool idle_listed_ = false;
  bool finished_ = false;

  // Guarded by IngestPipeline::commit_mutex_.
  format::Recipe recipe_;
  std::uint64_t pieces_in_flight_ = 0;
};

/// The parts used by a pipeline.
/// Lifetime: all parts must outlive the pipeline.
struct IngestParts {
  const Chunker& chunker;
  const format::Fingerprinter& fingerprinter;
  index::FingerprintIndex& index;
  DedupPolicy& policy;
  layout::Layout& layout;
  base::ThreadPool& fingerprint_pool;  ///< Runs no task that waits for the pipeline.
  TailSpill& spill;
  const IngestMetrics& metrics;
};

/// Turns the bytes of files into stored chunks and recipes. Thread-safe. Lock order: input_mutex_,
/// then commit_mutex_.
class IngestPipeline {
 public:
  static constexpr std::size_t kBatchBytes = 1U << 20;
  static constexpr std::size_t kInFlightBytesMax = 48U << 20;
  static constexpr std::size_t kIdleBytesMax = 48U << 20;
  /// Bounds the memory for batches looked up early, whatever the size of the chunks.
  static constexpr std::size_t kAheadPiecesMax = 16384;

  using StreamPtr = std::shared_ptr<IngestStream>;

  explicit IngestPipeline(const IngestParts& parts);
  IngestPipeline(const IngestPipeline&) = delete;
  IngestPipeline& operator=(const IngestPipeline&) = delete;
  /// Waits for the work in flight.
  ~IngestPipeline();

  /// Returns a stream that continues after `content`.
  [[nodiscard]] StreamPtr start(Content content);
  /// Takes all of `data`, or fails and takes nothing. May wait for memory or the disk.
  [[nodiscard]] Result<void> append(const StreamPtr& stream, std::span<const std::byte> data);
  /// Appends a hole of `bytes` bytes. A chunk ends before the hole.
  [[nodiscard]] Result<void> append_hole(const StreamPtr& stream, std::uint64_t bytes);
  /// Appends at most kBatchBytes with known boundaries: chunks of `lengths`, one after the other.
  /// The stream must not hold uncut bytes. Otherwise behaves like append().
  [[nodiscard]] Result<void> append_cut(const StreamPtr& stream, std::span<const std::byte> data,
                                        std::span<const std::uint32_t> lengths);
  /// Appends chunks already stored. The stream must not hold uncut bytes.
  [[nodiscard]] Result<void> append_chunks(const StreamPtr& stream, const format::RecipeRun& run);
  /// Ends the stream and cuts the remaining bytes. Does not wait for the rest's place.
  [[nodiscard]] Result<void> finish(const StreamPtr& stream);

  /// Drops the uncut bytes of a stream. The caller must not use the stream any more.
  void discard(const StreamPtr& stream);

  /// Waits until everything appended before has its place, and returns the content. The tail holds
  /// the bytes not yet cut. The stream stays usable.
  [[nodiscard]] Result<Content> settle(const StreamPtr& stream);
  /// Returns the content placed by now, without waiting. Includes a tail only if nothing is in
  /// flight.
  [[nodiscard]] Result<Content> snapshot(const StreamPtr& stream);
  /// Returns the recipe of a finished stream once all content has its place; nullopt before.
  [[nodiscard]] std::optional<format::Recipe> take_finished(const StreamPtr& stream);

  /// Waits until everything appended before the call, apart from tails, has its place.
  [[nodiscard]] Result<void> drain();
  /// Frees the buffers that are kept for batches to come, because an idle version needs none.
  /// Returns whether there were any.
  [[nodiscard]] bool drop_spare_buffers();
  /// Returns for each fingerprint the id of a stored chunk to which the version may refer, or
  /// nullopt. Waits while another thread commits.
  [[nodiscard]] std::vector<std::optional<ChunkId>> find_stored(
      std::span<const Fingerprint> fingerprints);
  /// Ends committing for good. After the return, the pipeline places and looks up no chunk. Every
  /// call in need of a lookup or a place then fails with kReadOnly.
  void give_up();
  /// Returns the error that stopped committing, if there is one. Does not wait.
  [[nodiscard]] Result<void> status();
  /// Returns the number of appended bytes without a place, tails included. Takes no lock.
  [[nodiscard]] std::uint64_t held_bytes() const { return held_; }
  /// Returns the number of chunks placed since the start. Takes no lock.
  [[nodiscard]] std::uint64_t placed_chunks() const { return placed_chunks_; }

 private:
  struct Piece {
    std::uint32_t offset = 0;
    std::uint32_t bytes = 0;
    format::RecipeRun ready;  // A hole or stored chunks, if it has bytes: nothing to store.
    StreamPtr stream;
    [[nodiscard]] bool is_ready() const { return ready.bytes != 0; }
  };
  /// The answers of the index and the layout about the remaining pieces of a batch.
  struct Lookup {
    PlacedMarks::Mark mark = 0;  // Chunks placed later are not found.
    std::vector<std::optional<ChunkId>> stored;
    /// A candidate for each piece with a chunk; empty if the policy is never asked.
    std::vector<DedupCandidate> candidates;
    std::vector<DedupDecision> decisions;  // About the candidates.
  };
  struct Batch {
    IngestStream::Buffer buffer;
    std::size_t used = 0;
    std::vector<Piece> pieces;
    std::vector<Fingerprint> fingerprints;
    std::size_t next_piece = 0;
    // Used only by the committing thread. Empty after an error.
    std::optional<Lookup> lookup;
  };
  using BatchPtr = std::shared_ptr<Batch>;

  // The caller holds input_mutex_:
  void reserve(IngestStream& stream, std::size_t bytes);
  [[nodiscard]] Result<void> cut(const StreamPtr& stream, bool all);
  [[nodiscard]] Result<void> load_spilled(IngestStream& stream);
  /// Returns the error of spilling that prevents keeping the bound.
  Result<void> trim_idle(const StreamPtr& keep);
  void list_idle(const StreamPtr& stream);
  void unlist_idle(IngestStream& stream);
  void share(std::span<const std::byte> data, const std::vector<Piece>& pieces);
  void share_ready(const StreamPtr& stream, const format::RecipeRun& run);
  void count_in_flight(const StreamPtr& stream, std::size_t pieces);
  void submit(BatchPtr batch);
  void submit_shared();
  [[nodiscard]] IngestStream::Buffer take_buffer(std::size_t bytes);
  void give_back(IngestStream::Buffer buffer);

  void fingerprint(const BatchPtr& batch, std::uint64_t ticket);
  void commit_ready();
  void commit_in_task();

  // The caller holds commit_mutex_:
  // Returns whether the committing thread should look up a batch before the next commit.
  [[nodiscard]] bool should_look_up() const;
  /// Returns whether the first batch, already looked up, should be committed now.
  [[nodiscard]] bool should_commit() const;
  void retire_first();
  void forget_lookups();

  // Called only by the committing thread, without commit_mutex_:
  void look_up(Batch& batch);
  void describe(std::span<DedupCandidate> candidates);
  void find_containers(std::span<DedupCandidate> candidates);
  void find_elsewhere(std::span<DedupCandidate> candidates);
  void refresh(Batch& batch);
  void decide(Batch& batch, std::span<const BatchPtr> ahead);
  [[nodiscard]] Result<void> commit_batch(Batch& batch, std::span<const BatchPtr> ahead);
  /// Places a chunk, unless the chunk refers to a stored copy, and returns the id. `candidate`: the
  /// piece's position among the pieces with a chunk.
  [[nodiscard]] Result<ChunkId> commit_chunk(const Batch& batch, std::size_t from,
                                             std::size_t candidate, DedupTally& tally);
  void count(const DedupTally& tally);

  /// Tries again if committing stopped for lack of space. Returns the remaining error.
  [[nodiscard]] Result<void> resume();
  [[nodiscard]] Result<void> wait_for_ticket(std::uint64_t ticket);

  const Chunker& chunker_;
  const format::Fingerprinter& fingerprinter_;
  index::FingerprintIndex& index_;
  DedupPolicy& policy_;
  layout::Layout& layout_;
  base::ThreadPool& pool_;
  TailSpill& spill_;
  const IngestMetrics& metrics_;
  const std::size_t chunk_max_;
  const std::size_t look_ahead_bytes_;
  std::atomic<std::uint64_t> held_{0};
  std::atomic<std::uint64_t> placed_chunks_{0};

  std::mutex input_mutex_;
  std::list<StreamPtr> idle_;  // Streams with a buffer; longest idle first.
  std::size_t idle_bytes_ = 0;
  BatchPtr shared_;  // Small finished files, many in one batch.
  std::uint64_t next_ticket_ = 0;

  std::mutex commit_mutex_;
  std::condition_variable progress_;
  std::map<std::uint64_t, BatchPtr> ready_;
  std::uint64_t committed_ = 0;   // Tickets below committed_ are done.
  std::uint64_t looked_up_ = 0;   // Tickets from committed_ to below looked_up_ have a lookup.
  std::uint64_t wanted_ = 0;      // Callers wait for the tickets below wanted_.
  std::size_t ahead_bytes_ = 0;   // Data of the batches with a lookup, after the first batch.
  std::size_t ahead_pieces_ = 0;  // Pieces of the batches in ahead_bytes_.
  std::size_t in_flight_bytes_ = 0;
  std::size_t tasks_ = 0;
  bool committing_ = false;
  std::optional<Error> error_;

  PlacedMarks marks_;  // Used only by the committing thread.

  std::mutex buffers_mutex_;
  std::vector<IngestStream::Buffer> buffers_;  // Full-sized buffers, for reuse.
};

}  // namespace varve::ingest
