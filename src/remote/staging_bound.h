// SPDX-License-Identifier: Apache-2.0
// The bound on unreplicated data in a repository's folder. decisions/100.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "varve/result.h"

namespace varve::remote {

/// Makes writers wait for the store while the unreplicated data exceeds the bound or the disk's
/// room: replicated data can be removed from the disk. A writer goes on when there is room. At the
/// end of a replication a writer also goes on for a step: the remaining data has no commit yet, so
/// waiting would not free it. After `patience` without a replication, the writer gets an error, and
/// every further writer at once, until a replication ends. Thread-safe.
class StagingBound {
 public:
  struct Parts {
    std::string place{};          ///< The store, for messages.
    std::uint64_t bytes_max = 0;  ///< The bound.
    std::chrono::milliseconds patience{};
    /// Returns the bytes of unreplicated data. May be slow.
    std::function<Result<std::uint64_t>()> staged{};
    /// Returns the bytes that the disk may still take: fewer than `wanted` if a replication may
    /// make room, and nullopt if nothing can. Empty for an unlimited disk.
    std::function<std::optional<std::uint64_t>(std::uint64_t wanted)> disk_room{};
    std::function<void()> notify{};     ///< Asks for a replication.
    std::function<bool()> is_fenced{};  ///< Nothing more will be replicated.
  };
  explicit StagingBound(Parts parts) : parts_(std::move(parts)) {}

  /// Waits before `bytes` are accepted. The caller holds no lock. Errors: kInterrupted if the
  /// request was interrupted (base/interruption.h); kNoSpace after the patience, or if too many
  /// writers wait already.
  [[nodiscard]] Result<void> before_write(std::uint64_t bytes);
  /// Waits before a seal. After the patience, the seal goes on: the data is in the folder already.
  void before_seal();
  /// A replication has ended well.
  void replicated();
  /// Lets all writers go on.
  void stop();
  /// Returns the number of writers and seals waiting now.
  [[nodiscard]] std::size_t waiting() const { return waiting_; }

  /// Limit of writers waiting at once. A mount has a few threads more, for readers.
  static constexpr std::size_t kWaitingMax = 24;

 private:
  enum class End : std::uint8_t { kRoom, kReplicated, kStopped, kInterrupted, kLate };
  [[nodiscard]] bool has_room(std::uint64_t wanted);
  [[nodiscard]] End wait(const char* who, std::uint64_t wanted);
  /// Waits until more replications than `before` have ended.
  [[nodiscard]] End wait_for_store(std::uint64_t before);
  void tell(const char* who);
  /// Returns the bytes to accept although there is no room.
  [[nodiscard]] std::uint64_t step();
  [[nodiscard]] bool is_disk_full() {
    const std::lock_guard lock(mutex_);
    return is_disk_full_;
  }
  /// Returns why writers wait.
  [[nodiscard]] std::string reason();

  const Parts parts_;
  std::atomic<std::int64_t> budget_ = 0;  // Bytes to accept before the next look at the folder.
  std::atomic<std::size_t> waiting_ = 0;

  std::mutex mutex_;  // Guards the members below.
  std::condition_variable changed_;
  std::uint64_t replications_ = 0;
  std::uint64_t staged_ = 0;                         // At the last look.
  bool is_disk_full_ = false;                        // At the last look.
  std::chrono::steady_clock::time_point told_at_{};  // When waiting was last logged.
  bool gave_up_ = false;  // The patience of a writer ended, and nothing was replicated since.
  bool stopping_ = false;
};

}  // namespace varve::remote
