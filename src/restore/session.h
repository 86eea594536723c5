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
#include "restore/restore_engine.h"

namespace varve::restore {

/// What sessions work with; outlives them.
struct SessionContext {
  EngineContext engine;  ///< Without source and stream, which the session fills in.
  std::string engine_name;
  base::ThreadPool* prefetchers = nullptr;
};

/// What somebody does with the bytes of an area.
enum class TakeFor : std::uint8_t {
  kCopy,          ///< Holds the area for a moment.
  kLending,       ///< Holds it until it was written somewhere.
  kLendingWhole,  ///< And takes all that it asks for or nothing.
};

/// Bytes of an assembled area, which stays as long as somebody holds it.
struct AreaBytes {
  std::shared_ptr<const AssemblyArea> area;
  std::uint64_t position = 0;
  std::size_t count = 0;
  [[nodiscard]] std::span<const std::byte> span() const {
    return {area->bytes_at(position), count};
  }
};

/// One reader's way through a version in tree order. Keeps the area that is being read, the
/// next one, which is assembled meanwhile, and the one before, since requests overtake each
/// other. Thread-safe; its mutex is never held during I/O.
class Session : public std::enable_shared_from_this<Session> {
 public:
  [[nodiscard]] static Result<std::shared_ptr<Session>> create(
      const SessionContext& context, std::uint64_t version_key, layout::ChunkSource* source,
      std::unique_ptr<FileStream> stream, std::uint64_t position, std::size_t memory_bytes);

  [[nodiscard]] std::uint64_t version_key() const { return version_key_; }

  /// At most `bytes` from `data_offset` of a file, if they are assembled. Counts them as
  /// read, and has the next area assembled when its time has come. Nothing is lent where
  /// readers hold too many areas that the session has done with.
  [[nodiscard]] std::optional<AreaBytes> take(std::uint64_t ordinal, std::uint64_t data_offset,
                                              std::size_t bytes, TakeFor purpose);

  /// Whether the reader of these bytes follows this session, which then passes over files
  /// that were left out.
  [[nodiscard]] bool expects(std::uint64_t ordinal, std::uint64_t data_offset);

  /// Assembles, or waits, until take() has these bytes. False if they will not come.
  [[nodiscard]] bool await(std::uint64_t ordinal, std::uint64_t data_offset);

  /// Has the first area assembled in the background.
  void start();
  void set_memory(std::size_t bytes);
  /// Frees what can be freed now; nothing is served any more. Who calls it lets the engine end,
  /// which may wait for the disk: not under a lock.
  [[nodiscard]] std::unique_ptr<RestoreEngine> drop();

  /// Everything was read, or the session went on without its reader.
  [[nodiscard]] bool is_over() const;
  /// Somebody assembles: dropping it now would not free its memory.
  [[nodiscard]] bool is_busy() const;
  /// Less than a quarter of what was assembled was read.
  [[nodiscard]] bool was_wasted() const;

 private:
  Session(const SessionContext& context, std::uint64_t version_key,
          std::unique_ptr<FileStream> stream, std::uint64_t position, std::size_t memory_bytes);

  using Lock = std::unique_lock<std::mutex>;
  [[nodiscard]] std::shared_ptr<const AssemblyArea> find_area(std::uint64_t position) const;
  [[nodiscard]] EngineMemory engine_memory() const;
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
  std::unique_ptr<RestoreEngine> engine_;  // Belongs to whoever has set assembling_.

  mutable std::mutex mutex_;  // Taken after the manager's, before the stream's and the pools'.
  std::condition_variable assembled_;
  std::deque<std::shared_ptr<const AssemblyArea>> areas_;
  std::vector<std::weak_ptr<const AssemblyArea>> left_;  // That readers held when they were left.
  bool assembling_ = false;
  bool prefetch_queued_ = false;
  bool ended_ = false;  // Nothing can be assembled any more.
  bool dropped_ = false;
  std::uint64_t next_position_;  // Where the next area, or the one in the making, starts.
  std::uint64_t skip_to_ = 0;
  std::uint64_t frontier_;      // Everything before it was read or left out.
  std::uint64_t steady_since_;  // Nothing between here and the frontier was left out.
  std::uint64_t frontier_file_ = 0;
  bool at_file_end_ = true;  // The file at the frontier was read to its end.
  std::uint64_t bytes_assembled_ = 0;
  std::uint64_t bytes_taken_ = 0;
  std::size_t memory_bytes_;
  std::size_t area_bytes_;  // Of the next area; grows up to area_bytes_max_.
  std::size_t area_bytes_max_;
};

}  // namespace varve::restore
