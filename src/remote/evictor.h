// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "store/space_guard.h"

namespace varve::remote {

class BucketFolder;
class LocalData;
class Replicator;

/// Removes replicated data from the disk of the writer's folder. Thread-safe.
class Evictor {
 public:
  /// Lifetime: the references outlive the object.
  Evictor(BucketFolder& folder, LocalData& local, Replicator& replicator,
          const store::SpaceGuard& disk)
      : folder_(folder), local_(local), replicator_(replicator), disk_(disk) {}

  /// Removes replicated data from the disk if the data exceeds the limit, or if the disk is nearly
  /// full for `wanted` more bytes. Returns whether any data was removed. Logs errors.
  bool evict(std::uint64_t wanted = 0);
  /// Returns how many bytes the folder's disk may still take before writers should wait for the
  /// store. First removes data from a disk without room for `wanted` bytes. Returns 0 if a
  /// replication may make room, and nullopt if nothing can.
  [[nodiscard]] std::optional<std::uint64_t> disk_room(std::uint64_t wanted);
  /// Returns, once, whether an eviction waits for Replicator::confirm_newest().
  [[nodiscard]] bool take_wants_newest() { return wants_newest_.exchange(false); }

 private:
  BucketFolder& folder_;
  LocalData& local_;
  Replicator& replicator_;
  const store::SpaceGuard& disk_;
  std::atomic<bool> wants_newest_ = false;
};

}  // namespace varve::remote
