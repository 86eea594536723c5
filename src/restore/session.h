// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "restore/file_stream.h"
#include "restore/reader_frontier.h"
#include "restore/restore_engine.h"

namespace varve::restore {

/// The parts shared by sessions.
/// Lifetime: must outlive the sessions.
struct SessionContext {
  EngineContext engine;  ///< The engine's parts; the session sets `source` and `stream`.
  std::string engine_name;
  base::ThreadPool* prefetchers = nullptr;
};

/// The caller's use of an area's bytes.
enum class TakeFor : std::uint8_t {
  kCopy,          ///< Copies the bytes and holds the area only during the copy.
  kLending,       ///< Holds the area until the bytes are written elsewhere.
  kLendingWhole,  ///< As kLending, but takes either all requested bytes or none.
};

/// Bytes of an assembled area. The holder keeps the area alive.
struct AreaBytes {
  std::shared_ptr<const AssemblyArea> area;
  std::uint64_t position = 0;
  std::size_t count = 0;
  [[nodiscard]] std::span<const std::byte> span() const {
    return {area->bytes_at(position), count};
  }
};

/// Serves one reader going through a version in tree order. Keeps three areas: the reader's present
/// area, the next area, assembled in advance, and the previous area, because requests overtake each
/// other. Thread-safe; never holds its mutex during I/O.
class Session : public std::enable_shared_from_this<Session> {
 public:
  /// `reads_all`: as EngineContext::reads_all.
  [[nodiscard]] static Result<std::shared_ptr<Session>> create(
      const SessionContext& context, std::uint64_t version_key, layout::ChunkSource* source,
      std::unique_ptr<FileStream> stream, std::uint64_t position, std::size_t memory_bytes,
      bool reads_all = false);

  [[nodiscard]] std::uint64_t version_key() const { return version_key_; }

  /// Returns at most `bytes` from `data_offset` of a file, if assembled. Counts the bytes as read,
  /// and starts the assembly of the next area when due. Lends nothing while readers hold too many
  /// areas that the session has dropped.
  [[nodiscard]] std::optional<AreaBytes> take(std::uint64_t ordinal, std::uint64_t data_offset,
                                              std::size_t bytes, TakeFor purpose);

  /// Returns whether the reader of these bytes follows this session. If so, the session skips the
  /// files left out by the reader.
  [[nodiscard]] bool expects(std::uint64_t ordinal, std::uint64_t data_offset);

  /// Assembles, or waits, until take() can return the bytes. Returns false if take() never can.
  [[nodiscard]] bool await(std::uint64_t ordinal, std::uint64_t data_offset);

  /// Starts the assembly of the first area in the background.
  void start();
  void set_memory(std::size_t bytes);
  /// Ends the session and frees its areas. Returns the engine unless an assembly is under way. The
  /// caller must not hold a lock while destroying the engine: the destructor may wait for the disk.
  [[nodiscard]] std::unique_ptr<RestoreEngine> drop();

  /// Returns whether the session continues and nothing was read from it yet.
  [[nodiscard]] bool is_unread() const;
  /// Returns whether everything was read, or the reader used hardly any of the assembled bytes.
  [[nodiscard]] bool is_over() const;
  /// Returns whether a thread is assembling. Dropping the session now would not free its memory.
  [[nodiscard]] bool is_busy() const;
  /// Returns whether less than a quarter of the assembled bytes was read.
  [[nodiscard]] bool was_wasted() const;

 private:
  Session(const SessionContext& context, std::uint64_t version_key,
          std::unique_ptr<FileStream> stream, std::uint64_t position, std::size_t memory_bytes);

  using Lock = std::unique_lock<std::mutex>;
  [[nodiscard]] std::shared_ptr<const AssemblyArea> find_area(std::uint64_t position) const;
  [[nodiscard]] EngineMemory engine_memory() const;
  [[nodiscard]] std::size_t request_bytes() const;
  void advance(std::uint64_t position, std::size_t bytes, const StreamFile& file);
  void leave_first_area();
  [[nodiscard]] bool may_lend() const;
  [[nodiscard]] bool is_due() const;
  void prefetch_if_due();
  void prefetch();
  void assemble(Lock& lock);

  const SessionContext context_;
  const std::uint64_t version_key_;
  const std::unique_ptr<FileStream> stream_;
  std::unique_ptr<RestoreEngine> engine_;  // Used by the thread that has set assembling_.

  // Taken after the manager's mutex, before the stream's and the pools'.
  mutable std::mutex mutex_;
  std::condition_variable assembled_;
  std::deque<std::shared_ptr<const AssemblyArea>> areas_;
  // Areas that readers still held when the session dropped the areas.
  std::vector<std::weak_ptr<const AssemblyArea>> left_;
  bool assembling_ = false;
  bool prefetch_queued_ = false;
  bool ended_ = false;  // True if no further area can be assembled.
  bool dropped_ = false;
  std::uint64_t next_position_;  // Start of the next area, or of the area under assembly.
  std::uint64_t skip_to_ = 0;
  ReaderFrontier frontier_;
  std::uint64_t bytes_assembled_ = 0;
  std::uint64_t bytes_taken_ = 0;
  std::size_t memory_bytes_;
  std::size_t area_bytes_;  // Size of the next area; grows up to area_bytes_max_.
  std::size_t area_bytes_max_;
};

}  // namespace varve::restore
