// SPDX-License-Identifier: Apache-2.0
#include "restore/chunk_resolver.h"

#include <fmt/core.h>

#include <utility>

namespace varve::restore {
namespace {
constexpr std::size_t kRecentHeaders = 16;
}  // namespace

Result<void> verify_place(const format::ContainerHeader& header, std::uint32_t index, ChunkId id) {
  if (index < header.chunks.size() && header.chunks[index].id == id) return {};
  return Error(ErrorCode::kCorrupt,
               fmt::format("container {} does not hold chunk {}/{} at place {}", header.number,
                           static_cast<std::uint32_t>(id.birth()), id.ordinal(), index));
}

void ChunkResolver::forget() {
  run_.reset();
  header_.reset();
  recent_.clear();
  oldest_ = 0;
}

Result<std::shared_ptr<const format::ContainerHeader>> ChunkResolver::header(
    ContainerNumber container) {
  for (const auto& known : recent_) {
    if (known->number == container) return known;
  }
  auto result = source_->header(container);
  if (!result) {
    return std::move(result).error().with_context(fmt::format("container {}", container));
  }
  if ((*result)->number != container) {
    return Error(ErrorCode::kCorrupt, fmt::format("the header of container {} has the number {}",
                                                  container, (*result)->number));
  }
  if (recent_.size() < kRecentHeaders) {
    recent_.push_back(*result);
  } else {
    recent_[oldest_] = *result;
    oldest_ = (oldest_ + 1) % kRecentHeaders;
  }
  return result;
}

Result<ChunkPlace> ChunkResolver::resolve(ChunkId id) {
  if (!run_ || id < run_->first || id.value - run_->first.value >= run_->count) {
    run_.reset();
    VARVE_TRY_ASSIGN(const auto run, source_->locate(id));
    VARVE_TRY_ASSIGN(header_, header(run.container));
    run_ = run;
  }
  const auto index = run_->index + static_cast<std::uint32_t>(id.value - run_->first.value);
  // An alias has a different id in the table. The window knows chunks by the stored id, unless a
  // chunk became an alias after entering the window. The caller then reads the chunk without the
  // window.
  VARVE_TRY(verify_place(*header_, index, id));
  return ChunkPlace{header_.get(), index};
}

}  // namespace varve::restore
