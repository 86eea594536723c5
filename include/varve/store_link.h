// SPDX-License-Identifier: Apache-2.0
// The part of an open repository for its object store.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "varve/result.h"
#include "varve/types.h"

namespace varve {

/// The self-declared writer of a repository in an object store: its host and folder. Advice for
/// people only.
struct StoreLease {
  std::string host{};
  std::string user{};
  std::string folder{};  ///< The repository's folder on the writer's host.
  Timestamp since{};     ///< The time of the writer's first replicated state, by the host's clock.
};

/// How old the store's last answer about other writers may be.
enum class FenceAge : std::uint8_t {
  kOfVersions,  ///< For changes of series and sealed versions, and seals: a new answer.
  kOfFiles,     ///< For changes of files: seconds, or half a minute while a new answer is awaited.
};

/// The part of a Repository for its object store; see varve/replication.h. For a repository outside
/// object stores, the functions do nothing. Thread-safe.
class StoreLink {
 public:
  virtual ~StoreLink() = default;

  /// Keeps the repository of an attached folder up to date: polls for a newer replicated state
  /// every `interval`, until Repository::close(). While the store fails, the folder stays
  /// unchanged. Calls `changed` from a thread of its own after the repository has begun to show a
  /// newer state, also if another process brought the folder up to date. Returns false, and does
  /// nothing, for a repository that is not in an attached folder, and on a read-only disk.
  /// Errors: those of opening the folder's state for writing.
  [[nodiscard]] virtual Result<bool> follow_store(std::chrono::milliseconds interval,
                                                  std::function<void()> changed) = 0;
  /// Ends pending reads from the object store with kUnavailable; later reads fail at once. Uploads
  /// go on. For a program about to close the repository: the purpose of a cancelled read is left
  /// undone. May be called again.
  virtual void end_store_reads() = 0;
  /// Announces that from now on most stored bytes are read once, as by the restore of a version or
  /// a check. The cache of a folder with an object store then receives only unused bytes of the
  /// store's responses, and keeps its present content. Results do not change.
  virtual void will_read_once() = 0;
  /// Returns whether the repository is fenced: another folder writes to the object store. The
  /// repository replicates nothing more: its versions and open versions stay in the folder. Makes
  /// no request.
  [[nodiscard]] virtual bool is_fenced() const = 0;
  /// Returns is_fenced(). First asks the store whether another folder writes, unless the last
  /// answer is young enough, and waits for the answer for at most three seconds: a store out of
  /// reach holds up no change. For mounts.
  [[nodiscard]] virtual bool learn_fence(FenceAge age) = 0;
  /// Returns the lease last seen by the repository's folder; nullopt without a lease. Makes no
  /// request.
  /// Errors: those of reading the folder.
  [[nodiscard]] virtual Result<std::optional<StoreLease>> store_lease() = 0;
};

}  // namespace varve
