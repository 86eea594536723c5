// SPDX-License-Identifier: Apache-2.0
#include "remote/folder_state.h"

#include "base/log.h"

namespace varve::remote {

void FolderState::share(ReplicaState& state) {
  const std::lock_guard lock(mutex_);
  shared_ = &state;
}

void FolderState::release() {
  const std::lock_guard lock(mutex_);
  shared_ = nullptr;
}

Result<ObjectMap> FolderState::objects() {
  const std::lock_guard lock(mutex_);
  if (shared_ != nullptr) return shared_->objects();
  VARVE_TRY_ASSIGN(const auto state, find_state(files_, root_));
  return state ? state->objects() : ObjectMap();
}

Result<std::optional<Lease>> FolderState::lease(const crypto::KeyRing* keys) {
  const std::lock_guard lock(mutex_);
  if (shared_ != nullptr) return kept_lease(*shared_, keys);
  VARVE_TRY_ASSIGN(const auto state, find_state(files_, root_));
  if (!state) return std::optional<Lease>();
  return kept_lease(*state, keys);
}

void FolderState::note_traffic(const bucket::Traffic& now) {
  const std::lock_guard lock(mutex_);
  const auto more = bucket::difference(now, noted_);
  if (more == bucket::Traffic{}) return;
  const auto note = [&]() -> Result<void> {
    if (shared_ != nullptr) return shared_->add_traffic(more);
    VARVE_TRY_ASSIGN(auto state, ReplicaState::open(files_, root_, false));
    return state.add_traffic(more);
  };
  const auto noted = note();
  if (noted) noted_ = now;
  if (!noted) base::log(base::LogLevel::kDebug, noted.error().message());
}

Result<std::uint64_t> FolderState::number(std::string_view purpose) {
  const std::lock_guard lock(mutex_);
  return shared_ != nullptr ? shared_->number(purpose) : Result<std::uint64_t>(0);
}

Result<void> FolderState::set_number(std::string_view purpose, std::uint64_t value) {
  const std::lock_guard lock(mutex_);
  return shared_ != nullptr ? shared_->set_number(purpose, value) : Result<void>();
}

}  // namespace varve::remote
