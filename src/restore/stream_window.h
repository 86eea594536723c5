// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>

#include "layout/layout.h"
#include "restore/look_ahead_window.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::restore {

/// A run of chunks in the output stream. The stream is the data of all files one after the other,
/// without holes. `position` is the stream position of the run's first byte.
struct StreamRun {
  ChunkId first;
  std::uint32_t count = 0;
  std::uint64_t bytes = 0;
  std::uint64_t position = 0;
};

/// Yields the runs to restore, in order. Used by one thread at a time.
class RunStream {
 public:
  virtual ~RunStream() = default;
  /// Returns the next run, or nullopt at the end. Each run starts at the end of the previous run.
  [[nodiscard]] virtual Result<std::optional<StreamRun>> next() = 0;
};

/// The look-ahead window together with the runs of its chunks. Knows the place of each chunk in its
/// run and in the stream. Not thread-safe.
class StreamWindow {
 public:
  /// A place between two chunks.
  struct Cursor {
    std::uint64_t at = 0;     ///< Position in the window.
    std::uint64_t run = 0;    ///< Number of the run since the start.
    std::uint32_t chunk = 0;  ///< Chunks of the run before the cursor.
    std::uint64_t bytes = 0;  ///< Bytes of the run before the cursor.
  };

  /// The window identifies chunks by the ids under which `source` stores them.
  StreamWindow(RunStream* stream, layout::ChunkSource* source, std::size_t chunks_max)
      : stream_(stream), source_(source), chunks_(chunks_max) {}

  [[nodiscard]] const LookAheadWindow& chunks() const { return chunks_; }
  [[nodiscard]] const Cursor& front() const { return front_; }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }
  /// Returns the stream position of the first chunk.
  [[nodiscard]] std::uint64_t stream_position() const { return stream_position_; }
  /// Returns the length of the window, estimated from the average chunk of each run.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

  /// Returns the run of the chunk after the cursor. The chunk must be in the window.
  [[nodiscard]] const StreamRun& run(const Cursor& cursor) const {
    return runs_[cursor.run - front_.run];
  }
  /// Returns the stream position of the chunk after the cursor.
  [[nodiscard]] std::uint64_t stream_position(const Cursor& cursor) const {
    return run(cursor).position + cursor.bytes;
  }
  /// Moves the cursor past one chunk of `chunk_bytes`.
  void advance(Cursor& cursor, std::uint32_t chunk_bytes) const;

  /// Adds the next chunks until the window is `bytes_max` long or full.
  void fill(std::uint64_t bytes_max);
  /// Drops the chunks before `to`.
  void leave(const Cursor& to);

  using OnLeave = std::function<void(std::uint64_t at)>;
  /// Drops the whole runs before stream position `position`. Calls `on_leave` for each of their
  /// chunks that is in the window, before dropping it.
  [[nodiscard]] Result<void> skip_to(std::uint64_t position, const OnLeave& on_leave);

  /// Returns the end of the near part of the window. The near part's end only moves forward.
  [[nodiscard]] std::uint64_t near_end() const { return near_.at; }
  /// Extends the near part to `bytes_max` or to the end of the window. Calls `on_enter` for each
  /// chunk entering the near part.
  template <typename OnEnter>
  void extend_near(std::uint64_t bytes_max, OnEnter on_enter) {
    while (near_bytes_ < bytes_max && near_.at != chunks_.end()) {
      on_enter(near_.at);
      near_bytes_ += average_chunk(run(near_));
      advance(near_, 0);
    }
  }

 private:
  [[nodiscard]] static std::uint64_t average_chunk(const StreamRun& run) {
    return run.bytes / run.count;
  }
  [[nodiscard]] bool pull_run();
  void pop_chunk();
  void pop_run();

  [[nodiscard]] ChunkId next_id(const StreamRun& run);

  RunStream* const stream_;
  layout::ChunkSource* const source_;
  LookAheadWindow chunks_;
  // The runs with chunks in the window. Of the last run, only the first `back_chunks_` chunks are
  // in the window.
  std::deque<StreamRun> runs_;
  Cursor front_;
  std::uint64_t stream_position_ = 0;
  std::uint32_t back_chunks_ = 0;
  // The stored ids of the last run's next chunks.
  layout::StoredRun back_ids_;
  std::uint64_t bytes_ = 0;
  Cursor near_;  // `near_.bytes` is not maintained.
  std::uint64_t near_bytes_ = 0;
  std::optional<Error> error_;
  bool ended_ = false;
};

}  // namespace varve::restore
