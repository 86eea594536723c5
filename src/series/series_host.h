// SPDX-License-Identifier: Apache-2.0
// The repository, as the series of the repository see it.
#pragma once

#include <cstdint>
#include <string>

#include "varve/result.h"
#include "varve/types.h"

namespace varve::series {

class EvictionRules;
class Pool;

/// How urgent the background arranging of a series is.
struct ArrangeUrgency {
  std::uint64_t seals_behind = 0;   ///< Seals not yet covered by a finished arranging.
  bool seal_waits = false;          ///< A seal of the series waits for arranging.
  bool other_series_waits = false;  ///< No seal of the series waits, but a seal of another series.
};

/// The functions of a repository that a series calls. Thread-safe. A series calls no function with
/// a lock that the functions of the series need.
class SeriesHost {
 public:
  virtual ~SeriesHost() = default;

  /// Returns the repository's pool. The first call opens the pool.
  [[nodiscard]] virtual Result<Pool*> pool() = 0;
  /// Returns the pool if pool() has opened the pool; else null.
  [[nodiscard]] virtual Pool* opened_pool() = 0;
  /// Returns the present text of varve.repo, for labels.
  [[nodiscard]] virtual std::string superblock() = 0;
  /// Makes programs without support for aliases refuse the repository. Call before the first alias.
  [[nodiscard]] virtual Result<void> require_aliases() = 0;

  /// Call before a version is read.
  virtual void on_reader() = 0;
  /// Call before a seal, without a lock. Waits a bounded time if arranging is far behind.
  virtual void before_seal(SeriesId series) = 0;
  /// Requests arranging in the background.
  virtual void arrange_soon(SeriesId series) = 0;
  /// Returns how urgent the background arranging of a series is.
  [[nodiscard]] virtual ArrangeUrgency arrange_urgency(SeriesId series) = 0;
  /// Returns how arranging treats evicted files; null where all data is on the disk.
  [[nodiscard]] virtual EvictionRules* eviction() = 0;
  /// Requests a replication in the background, where there is an object store.
  virtual void replicate_soon() = 0;

  /// Call after a failure to be repaired by the next opening of the repository.
  virtual void left_behind() = 0;
  /// Call with the labels' sequence number after labels were written. Only in an encrypted
  /// repository.
  virtual void labelled(std::uint64_t sequence) = 0;
};

}  // namespace varve::series
