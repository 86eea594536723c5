// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "bucket/bucket.h"
#include "crypto/key_ring.h"
#include "io/file_system.h"
#include "remote/changes.h"
#include "remote/lease.h"
#include "remote/replica_state.h"
#include "varve/result.h"

namespace varve::remote {

/// The state of an open folder. A process may open the state only once at a time, so all readers
/// share the state that a replication or a follower has open for writing. Thread-safe.
class FolderState {
 public:
  /// Lifetime: `files` outlives the object.
  FolderState(io::FileSystem& files, std::string root) : files_(files), root_(std::move(root)) {}

  /// Makes the other functions use `state`, which the process has open for writing.
  /// Lifetime: `state` outlives the next release().
  void share(ReplicaState& state);
  /// Makes the other functions open the state for each call.
  void release();

  /// Returns the map of objects of the newest head; empty without a state.
  [[nodiscard]] Result<ObjectMap> objects();
  /// Returns the lease kept in the folder; nullopt without a readable lease.
  [[nodiscard]] Result<std::optional<Lease>> lease(const crypto::KeyRing* keys);
  /// Adds the requests since the last call to the counts in the state. `now`: the requests since
  /// the opening. Logs errors.
  void note_traffic(const bucket::Traffic& now);
  /// Numbers in the shared state, as ReplicaState::number(). Without a shared state, the number is
  /// 0, and set_number() does nothing.
  [[nodiscard]] Result<std::uint64_t> number(std::string_view purpose);
  [[nodiscard]] Result<void> set_number(std::string_view purpose, std::uint64_t value);

 private:
  io::FileSystem& files_;
  const std::string root_;
  std::mutex mutex_;                // Innermost. Guards the members below.
  ReplicaState* shared_ = nullptr;  // Null unless the process has the state open for writing.
  bucket::Traffic noted_{};         // Requests counted in the state.
};

}  // namespace varve::remote
