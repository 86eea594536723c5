// SPDX-License-Identifier: Apache-2.0
#include "index/filtered_run.h"

#include <utility>

namespace varve::index {

void FilteredRun::load() {
  const RunShape& shape = run_->header().shape;
  std::vector<Block> filters(shape.groups());
  for (std::uint64_t group = 0; group < filters.size(); ++group) {
    load_outcome_ = run_->read_block(shape.filter_of(group), filters[group]);
    if (!load_outcome_) return;
  }
  filters_ = std::move(filters);
  loaded_.store(true, std::memory_order_release);
}

std::span<const std::byte, kBlockBytes> FilteredRun::filter_of(const Tag& tag) const {
  return filters_[RunShape::group_of(run_->header().shape.bucket_of(tag))];
}

Result<std::optional<ChunkId>> FilteredRun::find(const Tag& tag) {
  if (keeps_filters_) {
    std::call_once(load_once_, [this] { load(); });
    if (!load_outcome_) return load_outcome_.error();
    if (!may_contain(filter_of(tag), tag)) return std::optional<ChunkId>();
  } else {
    const RunShape& shape = run_->header().shape;
    Block filter{};
    VARVE_TRY(run_->read_block(shape.filter_of(RunShape::group_of(shape.bucket_of(tag))), filter));
    if (!may_contain(filter, tag)) return std::optional<ChunkId>();
  }
  return run_->find_entry(tag);
}

bool FilteredRun::may_have(const Tag& tag) const {
  return loaded_.load(std::memory_order_acquire) && may_contain(filter_of(tag), tag);
}

std::size_t FilteredRun::bytes() const {
  // An id run takes 16 bytes in the set, and the run's position 8.
  constexpr std::size_t kBytesPerIdRun = 24;
  const std::size_t filters = loaded_.load(std::memory_order_acquire) ? filters_.size() : 0;
  return sizeof(FilteredRun) + sizeof(IndexRun) + filters * kBlockBytes +
         run_->covered().runs().size() * kBytesPerIdRun;
}

}  // namespace varve::index
