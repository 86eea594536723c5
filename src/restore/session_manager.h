// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "restore/read_service.h"
#include "restore/session.h"

namespace varve::restore {

/// All sessions of a repository: shares the memory out among them, finds the one that a
/// reader follows, and decides when a new one is worth it. Thread-safe; the mutex is never
/// held during I/O.
class SessionManager {
 public:
  /// Memory below which a session is not worth its while, so that its number is bounded.
  static constexpr std::size_t kSessionBytesMin = 16U << 20;

  /// `memory_bytes` is for all sessions; there are at most `sessions_max`.
  SessionManager(SessionContext context, std::size_t memory_bytes, std::size_t sessions_max);
  ~SessionManager();

  /// As Session::take(), from whichever session has the bytes. `reader` only tells readers
  /// apart.
  [[nodiscard]] std::optional<AreaBytes> take(const void* reader, const ReadableFile& file,
                                              std::uint64_t data_offset, std::size_t bytes,
                                              TakeFor purpose = TakeFor::kCopy);
  /// The session whose reader will want these bytes, or nullptr.
  [[nodiscard]] std::shared_ptr<Session> find_expecting(const ReadableFile& file,
                                                        std::uint64_t data_offset);

  /// Whether there is memory for one more session; sessions that nobody has read from for
  /// a while count as free, and so does the one that `reader` has left.
  [[nodiscard]] bool has_room(const void* reader);
  /// Starts a session of this file's version. nullptr if there is no room or it failed.
  std::shared_ptr<Session> start(const ReadableFile& file, std::unique_ptr<FileStream> stream,
                                 std::uint64_t position, const void* reader);

  /// A file was read from its start to its end, without a session. Starts one behind it
  /// when the last ones were its neighbours.
  void on_whole_file(const ReadableFile& file);

  [[nodiscard]] std::uint64_t sessions_started() const { return started_.load(); }

 private:
  struct Member {
    std::shared_ptr<Session> session;
    std::uint64_t used = 0;        // In ticks: calls of take().
    const void* reader = nullptr;  // That used it last.
  };
  // Whole files that one reader read in tree order; several readers leave several trails.
  struct Trail {
    std::uint64_t version_key = 0;
    std::uint64_t ordinal = 0;  // Of the last one.
    unsigned streak = 0;
  };
  // How long a trail of a version must be for a session.
  struct Patience {
    std::uint64_t version_key = 0;
    unsigned streak_wanted = 2;
  };

  // Sessions that were removed, with what they assembled with. Declared before the lock, so that
  // they end after it: a session may be the last to hold a version, and an engine waits for what it
  // reads ahead.
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
  std::atomic<std::uint64_t> started_ = 0;

  std::mutex mutex_;  // Taken before a session's.
  std::vector<Member> members_;
  std::size_t starting_ = 0;   // Sessions in the making, which have room already.
  std::vector<Trail> trails_;  // The last one used comes last.
  std::vector<Patience> patience_;
  std::uint64_t ticks_ = 0;
};

}  // namespace varve::restore
