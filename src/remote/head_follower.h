// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "bucket/bucket.h"
#include "crypto/key_ring.h"
#include "io/file_system.h"
#include "meta/lmdb.h"
#include "remote/distant_data.h"
#include "remote/replica_state.h"
#include "varve/result.h"

namespace varve::remote {

/// The parts of an open repository whose folder is attached.
/// Lifetime: all outlive the follower.
struct FollowedFolder {
  std::string root{};
  io::FileSystem* files = nullptr;  ///< The files on disk, without the data in the store.
  bucket::Bucket* bucket = nullptr;
  DistantData* data = nullptr;
  ReplicaState* state = nullptr;       ///< Open for writing.
  const meta::Env* catalog = nullptr;  ///< Open for writing.
  std::shared_ptr<const crypto::KeyRing> keys{};
  /// Called without locks after the folder has begun to show another head. May be empty.
  std::function<void()> changed{};
};

/// Brings an attached folder to newer heads while the process shows the folder. If the store fails,
/// the folder stays unchanged, and the reason is logged once.
class HeadFollower {
 public:
  /// Starts a thread that asks for the next head every `interval`.
  HeadFollower(FollowedFolder folder, std::chrono::milliseconds interval);
  HeadFollower(const HeadFollower&) = delete;
  HeadFollower& operator=(const HeadFollower&) = delete;
  /// Ends the thread. The caller has stopped the bucket.
  ~HeadFollower();

 private:
  void run(const std::stop_token& stop);
  /// Looks once. Returns false if the folder is not a reader any more.
  [[nodiscard]] Result<bool> look(bool lists);
  /// Calls `changed` if the folder shows another head than at the last call.
  void tell_change();

  const FollowedFolder folder_;
  const std::chrono::milliseconds interval_;
  std::string shown_;  // The text of the head at the last call of tell_change().
  std::mutex mutex_;   // For the waits.
  std::condition_variable_any wake_;
  std::jthread thread_;
};

}  // namespace varve::remote
