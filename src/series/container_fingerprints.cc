// SPDX-License-Identifier: Apache-2.0
#include "series/container_fingerprints.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace varve::series {

std::optional<ContainerFingerprints::Place> ContainerFingerprints::find(ChunkId id) {
  auto where = chunks_.locate(id);
  if (where && is_unavailable()) return Place{*where, nullptr};
  auto header = where ? chunks_.header(where->container)
                      : Result<std::shared_ptr<const format::ContainerHeader>>(where.error());
  if (where && !header && header.error().code() == ErrorCode::kStale) {
    where = chunks_.locate(id);  // The chunk was moved meanwhile.
    if (where) header = chunks_.header(where->container);
  }
  if (!where) {
    if (unlocated_ == Unlocated::kError) report(ContainerNumber{}, where.error());
    return std::nullopt;
  }
  if (!header && header.error().code() == ErrorCode::kUnavailable) {
    tried_ = Clock::now();
    report(ContainerNumber{}, header.error());
  } else if (!header) {
    report(where->container, header.error());
  }
  return Place{*where, header ? std::move(*header) : nullptr};
}

// A distant store has waited long before giving up. Each container would wait as long.
bool ContainerFingerprints::is_unavailable() const {
  constexpr std::chrono::minutes kTriesEvery(10);
  const auto tried = tried_.load();
  return tried != Clock::time_point() && Clock::now() - tried < kTriesEvery;
}

void ContainerFingerprints::report(ContainerNumber container, const Error& error) {
  {
    const std::lock_guard lock(mutex_);
    if (!unreadable_.insert(container).second) return;
  }
  base::log(base::LogLevel::kError, name_ + ": " + error.message());
}

bool ContainerFingerprints::around(ChunkId id, const Visit& visit) {
  const auto place = find(id);
  if (!place || !place->header) return false;
  const auto& [where, header] = *place;
  for (std::uint64_t i = 0; i < where.count; ++i) {
    if (where.index + i >= header->chunks.size()) break;
    visit(header->chunks[where.index + i].fingerprint, where.first.plus(i));
  }
  return true;
}

std::uint64_t ContainerFingerprints::from(ChunkId id, std::uint64_t count, const Visit& visit) {
  const auto place = find(id);
  if (!place) return 0;
  const auto& [where, header] = *place;
  const std::uint64_t skip = id.value - where.first.value;
  const std::uint64_t found = std::min<std::uint64_t>(where.count - skip, count);
  for (std::uint64_t i = 0; header && i < found; ++i) {
    const std::uint64_t at = where.index + skip + i;
    if (at >= header->chunks.size()) break;
    visit(header->chunks[at].fingerprint, id.plus(i));
  }
  return found;
}

}  // namespace varve::series
