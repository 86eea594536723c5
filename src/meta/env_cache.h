// SPDX-License-Identifier: Apache-2.0
// Keeps the environments open that were used last.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>

#include "meta/lmdb.h"

namespace varve::meta {

/// Keeps a bounded number of environments open. An environment that is open takes 6 descriptors,
/// the address space of its map, and memory for LMDB's tables.
///
/// Thread-safe. The cache closes an environment without holding mutex_.
class EnvCache {
 public:
  explicit EnvCache(std::size_t open_max) : open_max_(open_max) {}

  /// Keeps an environment open, and drops the one that was used least recently. A dropped
  /// environment closes once no caller uses it.
  void keep(const std::shared_ptr<const Env>& env);
  /// Drops an environment.
  void drop(const Env* env);
  /// Drops all environments.
  void clear();

 private:
  const std::size_t open_max_;
  std::mutex mutex_;
  std::list<std::shared_ptr<const Env>> envs_;  // The last used one first.
};

}  // namespace varve::meta
