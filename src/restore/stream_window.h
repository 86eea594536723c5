// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>

#include "restore/look_ahead_window.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::restore {

/// A run of chunks of the output. `position` is where its bytes start in the stream, which
/// is all data of the files one after the other, without holes.
struct StreamRun {
  ChunkId first;
  std::uint32_t count = 0;
  std::uint64_t bytes = 0;
  std::uint64_t position = 0;
};

/// What is to be restored, in order. Used by one thread at a time.
class RunStream {
 public:
  virtual ~RunStream() = default;
  /// nullopt at the end. Each run's position is the end of the one before.
  [[nodiscard]] virtual Result<std::optional<StreamRun>> next() = 0;
};

/// The look-ahead window with the runs that its chunks come from, so that chunks can be told
/// by their place in a run and in the stream. Not synchronised.
class StreamWindow {
 public:
  /// A place between two chunks.
  struct Cursor {
    std::uint64_t at = 0;     ///< Position in the window.
    std::uint64_t run = 0;    ///< Number of the run since the start.
    std::uint32_t chunk = 0;  ///< Of the run, which come before.
    std::uint64_t bytes = 0;  ///< Of the run, which come before.
  };

  StreamWindow(RunStream* stream, std::size_t chunks_max) : stream_(stream), chunks_(chunks_max) {}

  [[nodiscard]] const LookAheadWindow& chunks() const { return chunks_; }
  [[nodiscard]] const Cursor& front() const { return front_; }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }
  /// Of the first chunk in the stream.
  [[nodiscard]] std::uint64_t stream_position() const { return stream_position_; }
  /// Estimated by the runs' average chunks.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

  /// The run of the chunk behind the cursor, which must be in the window.
  [[nodiscard]] const StreamRun& run(const Cursor& cursor) const {
    return runs_[cursor.run - front_.run];
  }
  /// Of the chunk behind the cursor in the stream.
  [[nodiscard]] std::uint64_t stream_position(const Cursor& cursor) const {
    return run(cursor).position + cursor.bytes;
  }
  /// Steps over one chunk of `chunk_bytes`.
  void advance(Cursor& cursor, std::uint32_t chunk_bytes) const;

  /// Takes in what comes next, until the window is `bytes_max` long or full.
  void fill(std::uint64_t bytes_max);
  /// Drops the chunks before `to`.
  void leave(const Cursor& to);

  using OnLeave = std::function<void(std::uint64_t at)>;
  /// Drops the whole runs before stream position `position`; `on_leave` is called before each
  /// of their chunks that is in the window goes.
  [[nodiscard]] Result<void> skip_to(std::uint64_t position, const OnLeave& on_leave);

  /// The near part of the window: its end, which only moves forward.
  [[nodiscard]] std::uint64_t near_end() const { return near_.at; }
  /// Lengthens the near part to `bytes_max` as far as the window reaches; `on_enter` is called
  /// for each chunk that comes in.
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

  RunStream* const stream_;
  LookAheadWindow chunks_;
  // The runs whose chunks are in the window. The last has come in up to `back_chunks_`.
  std::deque<StreamRun> runs_;
  Cursor front_;
  std::uint64_t stream_position_ = 0;
  std::uint32_t back_chunks_ = 0;
  std::uint64_t bytes_ = 0;
  Cursor near_;  // Its `bytes` are not kept.
  std::uint64_t near_bytes_ = 0;
  std::optional<Error> error_;
  bool ended_ = false;
};

}  // namespace varve::restore
