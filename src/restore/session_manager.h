// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "restore/read_service.h"
#include "restore/session.h"

namespace varve::restore {

/// Manages all sessions of a repository: divides the memory among the sessions, finds the session
/// followed by a reader, and decides when to start a new session. Thread-safe; never holds its
/// mutex during I/O.
class SessionManager {
 public:
  /// Least memory of a useful session. Bounds the number of sessions.
  static constexpr std::size_t kSessionBytesMin = 16U << 20;

  /// `memory_bytes`: limit for all sessions together. `sessions_max`: limit on the number of
  /// sessions.
  SessionManager(SessionContext context, std::size_t memory_bytes, std::size_t sessions_max);
  ~SessionManager();

  /// Takes bytes as Session::take(), from the session with the bytes. `reader` only identifies the
  /// reader.
  [[nodiscard]] std::optional<AreaBytes> take(const void* reader, const ReadableFile& file,
                                              std::uint64_t data_offset, std::size_t bytes,
                                              TakeFor purpose = TakeFor::kCopy);
  /// Returns the session whose reader is expected to read at `data_offset`, or nullptr.
  [[nodiscard]] std::shared_ptr<Session> find_expecting(const ReadableFile& file,
                                                        std::uint64_t data_offset);

  /// Returns whether there is memory for a further session. Counts idle sessions as free, and also
  /// the session that `reader` has left.
  [[nodiscard]] bool has_room(const void* reader);
  /// Starts a session of the file's version. Returns nullptr if there is no room or the start
  /// failed. `reads_all`: as EngineContext::reads_all.
  std::shared_ptr<Session> start(const ReadableFile& file, std::unique_ptr<FileStream> stream,
                                 std::uint64_t position, const void* reader,
                                 bool reads_all = false);

  /// Notes that a file was read from start to end without a session. Starts a session after the
  /// file if the files read before were neighbours of the file.
  void on_whole_file(const ReadableFile& file);

 private:
  struct Member {
    std::shared_ptr<Session> session;
    std::uint64_t used = 0;        // Time of the last use, in ticks (calls of take()).
    const void* reader = nullptr;  // Reader of the last use.
  };
  // A sequence of whole files read in tree order by one reader. Several readers leave several
  // trails.
  struct Trail {
    std::uint64_t version_key = 0;
    std::uint64_t ordinal = 0;  // Ordinal of the last file.
    unsigned streak = 0;
  };
  // Trail length needed to start a session of a version.
  struct Patience {
    std::uint64_t version_key = 0;
    unsigned streak_wanted = 2;
  };

  // A removed session with its engine. Callers declare the list before the lock, so that the
  // destructor of the list runs after the lock is released. A session may be the last holder of a
  // version, and an engine waits for its reads.
  struct RemovedSession {
    std::shared_ptr<Session> session;
    std::unique_ptr<RestoreEngine> engine;
  };
  using Removed = std::vector<RemovedSession>;

  [[nodiscard]] std::size_t free_candidate(const void* reader) const;
  [[nodiscard]] bool make_room(const void* reader, Removed& removed);
  void remove(std::size_t index, Removed& removed);
  void remove_finished(Removed& removed);
  void share_memory();
  [[nodiscard]] unsigned follow(std::uint64_t version_key, std::uint64_t ordinal);
  [[nodiscard]] Patience& patience(std::uint64_t version_key);

  const SessionContext context_;
  const std::size_t memory_bytes_;
  const std::size_t sessions_max_;

  std::mutex mutex_;  // Taken before a session's mutex.
  std::vector<Member> members_;
  std::size_t starting_ = 0;   // Sessions under creation, with a place already reserved.
  std::vector<Trail> trails_;  // Least recently used first.
  std::vector<Patience> patience_;
  std::uint64_t ticks_ = 0;
};

}  // namespace varve::restore
