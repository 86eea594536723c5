// SPDX-License-Identifier: Apache-2.0
#include "meta/env_cache.h"

#include <algorithm>
#include <utility>

namespace varve::meta {

void EnvCache::keep(const std::shared_ptr<const Env>& env) {
  std::shared_ptr<const Env> dropped;  // Closes after the lock is released.
  const std::lock_guard lock(mutex_);
  const auto at = std::find(envs_.begin(), envs_.end(), env);
  if (at != envs_.end()) {
    envs_.splice(envs_.begin(), envs_, at);
    return;
  }
  envs_.push_front(env);
  if (envs_.size() <= open_max_) return;
  dropped = std::move(envs_.back());
  envs_.pop_back();
}

void EnvCache::drop(const Env* env) {
  std::shared_ptr<const Env> dropped;
  const std::lock_guard lock(mutex_);
  const auto at = std::find_if(envs_.begin(), envs_.end(),
                               [env](const auto& kept) { return kept.get() == env; });
  if (at == envs_.end()) return;
  dropped = std::move(*at);
  envs_.erase(at);
}

void EnvCache::clear() {
  std::list<std::shared_ptr<const Env>> dropped;
  const std::lock_guard lock(mutex_);
  dropped.swap(envs_);
}

}  // namespace varve::meta
