// SPDX-License-Identifier: Apache-2.0
#include "store/found_damage.h"

namespace varve::store {

void FoundDamage::note(StoreId store, const base::IdRuns& chunks) {
  if (chunks.size() == 0) return;
  {
    const std::lock_guard lock(mutex_);
    const auto known = chunks_.find(store);
    const auto before = known == chunks_.end() ? base::IdRuns() : known->second;
    auto all = before.unite(chunks);
    if (all.runs().size() > kRunsMax) return;
    added_ += all.size() - before.size();
    chunks_[store] = std::move(all);
    if (added_ < next_call_) return;
    next_call_ = 2 * added_;
  }
  if (on_more_) on_more_();
}

bool FoundDamage::is_new(StoreId store, ContainerNumber container) {
  const std::lock_guard lock(mutex_);
  return containers_.size() < kRunsMax && containers_.emplace(store, container).second;
}

std::map<StoreId, base::IdRuns> FoundDamage::take() {
  const std::lock_guard lock(mutex_);
  containers_.clear();
  return std::exchange(chunks_, {});
}

}  // namespace varve::store
