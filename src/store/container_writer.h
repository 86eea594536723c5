// SPDX-License-Identifier: Apache-2.0
// Packs chunks into frames, frames into containers, and writes containers to segments on a separate
// thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <thread>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/ids.h"
#include "base/thread_pool.h"
#include "format/container.h"
#include "format/frame_codec.h"
#include "store/segment_files.h"
#include "store/segment_store.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::store {

struct ContainerWriterOptions {
  StoreId store{};
  NumberSource* numbers = nullptr;  ///< Outlives the writer.
  /// True to write volumes: compact containers, through the page cache.
  bool volume = false;
  /// Maximum length, in bytes, of a file with more than one container; 0 = by
  /// SegmentStore::segment_bytes().
  /// A file has at least one container, and no container is longer unless the container has a
  /// single frame.
  std::uint64_t segment_bytes_max = 0;
  /// True for a separate file per container, so that any container can be freed.
  bool file_per_container = false;
  /// Raw bytes in memory above which append() waits for the disk; at least 4 MiB without
  /// compression.
  std::size_t waiting_bytes_max = 32U << 20;
  /// True if a SpaceGuard admitted the appended data: the writer then uses the reserve, too.
  bool admitted = false;
  /// The existing marks of the births of all chunks.
  format::BirthMarks marks{};
  /// True to keep raw bytes until written, for read_unwritten(). Otherwise raw bytes wait only
  /// until packed into the container being built, which then holds the only copy.
  bool readable = true;

  /// Returns the raw bytes after which even a partly filled container is written. The limit bounds
  /// the waiting raw frames of very compressible data in memory.
  [[nodiscard]] std::size_t container_raw_bytes_max() const;
  /// Returns the maximum length of a container: a file has room for at least one container.
  [[nodiscard]] std::uint64_t container_bytes_max() const;
};

/// A written container, not necessarily synced.
struct WrittenContainer {
  format::ContainerRecord record;
  std::vector<base::IdRun> ids;              ///< Runs in the order of the chunk table.
  std::vector<std::uint64_t> run_raw_bytes;  ///< Raw size of each run.
  std::uint64_t digest = 0;                  ///< Sum of format::chunk_digest() of the chunks.
};

class ContainerBuilder;

/// A compressed frame of a group.
struct GroupFrame {
  /// Ids, fingerprints and raw bytes of the chunks, in the order of `raw`.
  std::vector<format::ChunkEntry> chunks;
  std::vector<std::byte> raw;    ///< At most kFrameRawBytesMax.
  format::EncodedFrame encoded;  ///< Made from `raw` with the raw bytes of the prefix, if any.
  std::uint8_t prefix = 0;       ///< As FrameEntry::prefix; the prefix is in the group.
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
  struct Frame {
    std::vector<format::ChunkEntry> chunks;
    std::vector<std::byte> raw;
    std::vector<std::uint32_t> offsets;
    format::EncodedFrame encoded;
    std::uint8_t prefix = 0;  // As FrameEntry::prefix.
    std::size_t group = 1;    // Frames of the group that begins here; 0 inside of a group.
    bool in_group = false;
    bool encoded_done = false;
  };
  using FramePtr = std::shared_ptr<Frame>;

  /// Starts the thread, unless the thread runs. The caller holds mutex_.
  void start_thread();
  [[nodiscard]] bool is_idle() const;
  void close_frame(std::unique_lock<std::mutex>& lock);
  void encode(const FramePtr& frame);
  void work();
  void release_raw(Frame& frame);
  void write_container(std::unique_lock<std::mutex>& lock);
  [[nodiscard]] Result<void> write_container_once();
  [[nodiscard]] Result<void> open_segment(std::uint64_t container_bytes);
  /// Requests another attempt, in the error state, and returns the attempt's outcome.
  [[nodiscard]] Result<void> retry(std::unique_lock<std::mutex>& lock);

  SegmentStore& store_;
  const format::FrameCodec& codec_;
  base::ThreadPool& compressors_;
  const ContainerWriterOptions options_;
  const std::function<void(WrittenContainer)> on_written_;
  const std::size_t frame_bytes_;  // Length beyond which no chunk is added to a frame.

  mutable std::mutex mutex_;  // Guards the members up to sync_mutex_.
  std::condition_variable work_ready_;
  std::condition_variable progress_;
  FramePtr open_frame_;
  std::deque<FramePtr> unwritten_;  // Closed frames, ascending; front frames may be packed.
  std::vector<std::vector<std::byte>> spare_;
  std::size_t packed_ = 0;  // Number of front frames in the container being built.
  std::size_t waiting_bytes_ = 0;
  std::uint64_t frames_closed_ = 0;
  std::uint64_t frames_written_ = 0;
  std::uint64_t flush_to_ = 0;  // Frames up to this count must be written out.
  std::optional<Error> error_;
  std::uint64_t attempts_ = 0;
  bool retry_wanted_ = false;
  bool stopping_ = false;
  bool running_ = false;  // The thread has not ended, and has buffers.
  std::thread thread_;    // An ended thread takes no lock any more.
  std::uint64_t stored_bytes_ = 0;
  std::vector<SegmentNumber> segments_;
  std::map<SegmentNumber, std::uint64_t> unsynced_;  // End of each segment, by number.

  std::mutex sync_mutex_;             // One sync at a time; taken before mutex_.
  std::set<SegmentNumber> doubtful_;  // Segments whose sync failed. Guarded by sync_mutex_.

  // Accessed only by the writer's thread while the thread runs.
  const std::unique_ptr<ContainerBuilder> builder_;
  SegmentNumber segment_{};
  std::uint64_t segment_offset_ = 0;
  std::unique_ptr<SegmentAppender> file_;
};

}  // namespace varve::store
