// SPDX-License-Identifier: Apache-2.0
// Keeps the environments of the last uses open.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>

#include "meta/lmdb.h"

namespace varve::meta {

/// Keeps a bounded number of environments open. An open environment takes 6 descriptors, the
/// address space of a map, and memory for LMDB's tables.
///
/// Thread-safe. The cache closes an environment without holding mutex_.
class EnvCache {
 public:
  explicit EnvCache(std::size_t open_max) : open_max_(open_max) {}

  /// Keeps an environment open, and drops the least recently used environment. A dropped
  /// environment closes when its last user releases it.
  void keep(const std::shared_ptr<const Env>& env);
  /// Drops an environment.
  void drop(const Env* env);
  /// Drops all environments.
  void clear();

 private:
  const std::size_t open_max_;
  std::mutex mutex_;
  std::list<std::shared_ptr<const Env>> envs_;  // The most recently used first.
};

}  // namespace varve::meta
