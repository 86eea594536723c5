// SPDX-License-Identifier: Apache-2.0
// Packs chunks into frames, frames into containers, and writes containers to segments on a separate
// thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "base/id_runs.h"
#include "base/ids.h"
#include "base/thread_pool.h"
#include "format/container.h"
#include "format/frame_codec.h"
#include "store/container_writer_options.h"
#include "store/segment_files.h"
#include "store/segment_store.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::store {

class ContainerBuilder;
struct GroupFrame;
class SegmentOutput;
struct UnwrittenFrame;
class UnwrittenFrames;

/// A written container, not necessarily synced.
struct WrittenContainer {
  format::ContainerRecord record;
  std::vector<base::IdRun> ids;              ///< Runs in the order of the chunk table.
  std::vector<std::uint64_t> run_raw_bytes;  ///< Raw size of each run.
  std::uint64_t digest = 0;                  ///< Sum of format::chunk_digest() of the chunks.
};

/// Writes chunks into containers and segments. Thread-safe.
///
/// A write error (a full disk, say) does not lose accepted chunks: the container waits in memory,
/// append() returns the error, and each further call tries again.
///
/// The writer has a thread and a container's memory only while unwritten chunks exist: each open
/// version has a writer, and most writers are idle.
class ContainerWriter {
 public:
  /// The writer's thread calls `on_written` before the container's chunks cease to be readable by
  /// read_unwritten().
  /// Lifetime: `store`, `codec` and `compressors` must outlive the writer.
  ContainerWriter(SegmentStore& store, const format::FrameCodec& codec,
                  base::ThreadPool& compressors, ContainerWriterOptions options,
                  std::function<void(WrittenContainer)> on_written);
  ContainerWriter(const ContainerWriter&) = delete;
  ContainerWriter& operator=(const ContainerWriter&) = delete;
  ~ContainerWriter();

  /// Appends a chunk and copies `raw`. Ids must ascend for read_unwritten() to find the chunks.
  [[nodiscard]] Result<void> append(ChunkId id, const Fingerprint& fingerprint,
                                    std::span<const std::byte> raw);

  /// Appends frames that must lie in the same container. A container has room for the group:
  /// together at most half of kContainerBytesMax of raw bytes, and at most 8192 chunks. The
  /// prefixes keep the limits of the format. The writer must not be readable.
  [[nodiscard]] Result<void> append_group(std::vector<GroupFrame> group);

  /// Returns the chunk's raw bytes if still in memory. The writer must be readable.
  [[nodiscard]] std::optional<std::vector<std::byte>> read_unwritten(ChunkId id);

  /// Waits until all earlier appended chunks are in the segment files. Does not sync the files.
  [[nodiscard]] Result<void> flush();
  /// Does the work of flush(), and waits until the segment files are on disk.
  [[nodiscard]] Result<void> sync();

  [[nodiscard]] std::uint64_t stored_bytes() const;
  /// Returns the numbers of the files begun by the writer.
  [[nodiscard]] std::vector<SegmentNumber> segments() const;

 private:
  /// Starts the thread, unless the thread runs. The caller holds mutex_.
  void start_thread();
  [[nodiscard]] bool is_idle() const;
  /// Returns whether another chunk may be appended now. May wait.
  [[nodiscard]] Result<void> wait_for_room(std::unique_lock<std::mutex>& lock);
  void close_frame(std::unique_lock<std::mutex>& lock);
  void encode(const std::shared_ptr<UnwrittenFrame>& frame);
  void work();
  void write_container(std::unique_lock<std::mutex>& lock);
  [[nodiscard]] Result<void> write_container_once();
  /// Requests another attempt, in the error state, and returns the attempt's outcome.
  [[nodiscard]] Result<void> retry(std::unique_lock<std::mutex>& lock);

  const format::FrameCodec& codec_;
  base::ThreadPool& compressors_;
  const ContainerWriterOptions options_;
  const std::function<void(WrittenContainer)> on_written_;
  const std::size_t frame_bytes_;  // As for UnwrittenFrames.
  const std::unique_ptr<SegmentOutput> output_;

  mutable std::mutex mutex_;  // Guards the members up to thread_.
  std::condition_variable work_ready_;
  std::condition_variable progress_;
  const std::unique_ptr<UnwrittenFrames> frames_;
  std::uint64_t flush_to_ = 0;  // Frames up to this count must be written out.
  std::optional<Error> error_;
  std::uint64_t attempts_ = 0;
  bool retry_wanted_ = false;
  bool stopping_ = false;
  bool running_ = false;  // The thread has not ended, and has buffers.
  std::thread thread_;    // An ended thread takes no lock any more.

  // Accessed only by the writer's thread while the thread runs.
  const std::unique_ptr<ContainerBuilder> builder_;
};

}  // namespace varve::store
