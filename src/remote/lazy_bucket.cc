// SPDX-License-Identifier: Apache-2.0
#include "remote/lazy_bucket.h"

namespace varve::remote {

// Other calls wait while the bucket is being opened, because every call needs the bucket.
Result<bucket::Bucket*> LazyBucket::made() {
  const std::lock_guard lock(mutex_);
  if (stopped_) return Error(ErrorCode::kInterrupted, place_ + ": the program ends");
  if (!bucket_) {
    VARVE_TRY_ASSIGN(bucket_, open_());
    made_ = bucket_.get();
    if (stopped_) bucket_->stop();  // An earlier stop() may have seen no bucket.
  }
  return bucket_.get();
}

Result<bucket::Bucket*> LazyBucket::reached() {
  VARVE_TRY_ASSIGN(auto* const bucket, made());
  if (is_reached_) return bucket;
  const std::lock_guard lock(reach_mutex_);
  if (!is_reached_) VARVE_TRY(bucket->list({}, {}, 1));
  is_reached_ = true;
  return bucket;
}

// A list before the first read would cost a round trip. After a refused read, a list says more.
template <typename Answer>
Result<Answer> LazyBucket::ask(const std::function<Result<Answer>(bucket::Bucket&)>& read) {
  VARVE_TRY_ASSIGN(auto* const bucket, made());
  auto answer = read(*bucket);
  if (answer) {
    is_reached_ = true;
    return answer;
  }
  const auto code = answer.error().code();
  if (code != ErrorCode::kUnavailable && code != ErrorCode::kInterrupted) VARVE_TRY(reached());
  return answer;
}

Result<void> LazyBucket::put(const std::string& name,
                             std::span<const std::span<const std::byte>> parts,
                             const bucket::PutOptions& options) {
  VARVE_TRY_ASSIGN(auto* const bucket, reached());
  return bucket->put(name, parts, options);
}

Result<std::size_t> LazyBucket::get(const std::string& name, std::uint64_t offset,
                                    std::span<std::byte> out) {
  return ask<std::size_t>([&](bucket::Bucket& bucket) { return bucket.get(name, offset, out); });
}

Result<std::vector<std::byte>> LazyBucket::get_all(const std::string& name, std::size_t bytes_max) {
  return ask<std::vector<std::byte>>(
      [&](bucket::Bucket& bucket) { return bucket.get_all(name, bytes_max); });
}

void LazyBucket::read_many(std::vector<bucket::ObjectRead> reads, bucket::ReadCompletion done) {
  const auto bucket = reached();
  if (bucket) return (*bucket)->read_many(std::move(reads), std::move(done));
  for (std::size_t i = 0; i < reads.size(); ++i) done(i, bucket.error());
}

Result<bucket::ObjectInfo> LazyBucket::head(const std::string& name) {
  return ask<bucket::ObjectInfo>([&](bucket::Bucket& bucket) { return bucket.head(name); });
}

Result<bucket::ListPage> LazyBucket::list(const std::string& prefix, const std::string& after,
                                          std::size_t objects_max) {
  VARVE_TRY_ASSIGN(auto* const bucket, made());
  auto page = bucket->list(prefix, after, objects_max);
  if (page) is_reached_ = true;
  return page;
}

Result<void> LazyBucket::remove(const std::string& name) {
  VARVE_TRY_ASSIGN(auto* const bucket, reached());
  return bucket->remove(name);
}

Result<void> LazyBucket::copy_prefix(const std::string& from, std::uint64_t bytes,
                                     const std::string& to, const bucket::PutOptions& options) {
  VARVE_TRY_ASSIGN(auto* const bucket, reached());
  return bucket->copy_prefix(from, bytes, to, options);
}

Result<void> LazyBucket::remove_unfinished(const std::string& prefix) {
  VARVE_TRY_ASSIGN(auto* const bucket, reached());
  return bucket->remove_unfinished(prefix);
}

Result<void> LazyBucket::remove_version(const std::string& name, const std::string& version) {
  VARVE_TRY_ASSIGN(auto* const bucket, reached());
  return bucket->remove_version(name, version);
}

Result<void> LazyBucket::lock(const std::string& name, const ObjectLock& lock) {
  VARVE_TRY_ASSIGN(auto* const bucket, reached());
  return bucket->lock(name, lock);
}

std::optional<std::int64_t> LazyBucket::clock_ahead() const {
  const auto* const made = made_.load();
  return made != nullptr ? made->clock_ahead() : std::nullopt;
}

std::optional<std::chrono::microseconds> LazyBucket::round_trip() const {
  const auto* const made = made_.load();
  return made != nullptr ? made->round_trip() : std::nullopt;
}

// Does not lock the mutex: a call holds the mutex while waiting for the store.
void LazyBucket::stop() {
  stopped_ = true;
  if (auto* const made = made_.load()) made->stop();
}

void LazyBucket::interrupt_reads() {
  if (auto* const made = made_.load()) made->interrupt_reads();
}

bucket::Traffic LazyBucket::traffic() const {
  const auto* const made = made_.load();
  return made != nullptr ? made->traffic() : bucket::Traffic{};
}

}  // namespace varve::remote
