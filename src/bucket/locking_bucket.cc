// SPDX-License-Identifier: Apache-2.0
#include "bucket/locking_bucket.h"

#include <string_view>

namespace varve::bucket {

namespace {

constexpr std::int64_t kSecondsOfDay = std::int64_t{24} * 60 * 60;

// The store refuses to replace a locked object where it keeps no versions.
bool is_written_again(std::string_view name) {
  return name.ends_with("/lease") || name.starts_with("probe/");
}

}  // namespace

std::int64_t seconds_of(const ObjectLock& lock) { return kSecondsOfDay * lock.days; }

void LockingBucket::set_rule(const ObjectLock& rule) {
  const std::lock_guard guard(mutex_);
  rule_ = rule;
}

ObjectLock LockingBucket::rule() const {
  const std::lock_guard guard(mutex_);
  return rule_;
}

std::map<std::string, std::int64_t> LockingBucket::take_locked() {
  const std::lock_guard guard(mutex_);
  return std::exchange(locked_, {});
}

std::int64_t LockingBucket::store_seconds() const {
  return clock_.now().seconds + inner_->clock_ahead().value_or(0);
}

void LockingBucket::note(const std::string& name, const ObjectLock& lock) {
  const auto end = store_seconds() + seconds_of(lock);
  const std::lock_guard guard(mutex_);
  locked_[name] = end;
}

Result<void> LockingBucket::put(const std::string& name,
                                std::span<const std::span<const std::byte>> parts,
                                const PutOptions& options) {
  const auto lock = rule();
  if (!lock.on() || is_written_again(name)) return inner_->put(name, parts, options);
  auto locked = options;
  locked.lock = lock;
  VARVE_TRY(inner_->put(name, parts, locked));
  note(name, lock);
  return {};
}

// Not all stores lock an object created by an upload in parts, so locking takes a separate request.
Result<void> LockingBucket::copy_prefix(const std::string& from, std::uint64_t bytes,
                                        const std::string& to, const PutOptions& options) {
  VARVE_TRY(inner_->copy_prefix(from, bytes, to, options));
  const auto lock = rule();
  if (!lock.on()) return {};
  VARVE_TRY(inner_->lock(to, lock));
  note(to, lock);
  return {};
}

}  // namespace varve::bucket
