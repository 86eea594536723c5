// SPDX-License-Identifier: Apache-2.0
// A bucket that locks new objects. docs/decisions/104.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "bucket/bucket.h"
#include "varve/object_lock.h"
#include "varve/result.h"

namespace varve::bucket {

/// Passes all calls on to another bucket, and locks each new object unless the lock is off. Objects
/// to be overwritten later, the lease and the objects of probes, get no lock. Thread-safe.
class LockingBucket final : public Bucket {
 public:
  /// Lifetime: `clock` outlives the bucket.
  LockingBucket(std::unique_ptr<Bucket> inner, const base::Clock& clock)
      : inner_(std::move(inner)), clock_(clock) {}

  /// Sets the lock for all objects written from now on.
  void set_rule(const ObjectLock& rule);
  [[nodiscard]] ObjectLock rule() const;
  /// Returns the ends of the locks of objects written since the last call, in seconds since 1970 by
  /// the store's clock.
  [[nodiscard]] std::map<std::string, std::int64_t> take_locked();
  /// Returns the current time by the store's clock, as far as known, in seconds since 1970.
  [[nodiscard]] std::int64_t store_seconds() const;

  [[nodiscard]] Result<void> put(const std::string& name,
                                 std::span<const std::span<const std::byte>> parts,
                                 const PutOptions& options) override;
  [[nodiscard]] Result<std::size_t> get(const std::string& name, std::uint64_t offset,
                                        std::span<std::byte> out) override {
    return inner_->get(name, offset, out);
  }
  [[nodiscard]] Result<std::vector<std::byte>> get_all(const std::string& name,
                                                       std::size_t bytes_max) override {
    return inner_->get_all(name, bytes_max);
  }
  void read_many(std::vector<ObjectRead> reads, ReadCompletion done) override {
    inner_->read_many(std::move(reads), std::move(done));
  }
  [[nodiscard]] Result<ObjectInfo> head(const std::string& name) override {
    return inner_->head(name);
  }
  [[nodiscard]] Result<ListPage> list(const std::string& prefix, const std::string& after,
                                      std::size_t objects_max) override {
    return inner_->list(prefix, after, objects_max);
  }
  [[nodiscard]] Result<void> remove(const std::string& name) override {
    return inner_->remove(name);
  }
  [[nodiscard]] Result<void> remove_version(const std::string& name,
                                            const std::string& version) override {
    return inner_->remove_version(name, version);
  }
  [[nodiscard]] Result<void> lock(const std::string& name, const ObjectLock& lock) override {
    return inner_->lock(name, lock);
  }
  [[nodiscard]] Result<void> copy_prefix(const std::string& from, std::uint64_t bytes,
                                         const std::string& to, const PutOptions& options) override;
  [[nodiscard]] Result<void> remove_unfinished(const std::string& prefix) override {
    return inner_->remove_unfinished(prefix);
  }
  void stop() override { inner_->stop(); }
  void interrupt_reads() override { inner_->interrupt_reads(); }
  [[nodiscard]] std::optional<std::int64_t> clock_ahead() const override {
    return inner_->clock_ahead();
  }
  [[nodiscard]] std::optional<std::chrono::microseconds> round_trip() const override {
    return inner_->round_trip();
  }
  [[nodiscard]] Traffic traffic() const override { return inner_->traffic(); }
  [[nodiscard]] std::string describe() const override { return inner_->describe(); }

 private:
  void note(const std::string& name, const ObjectLock& lock);

  const std::unique_ptr<Bucket> inner_;
  const base::Clock& clock_;
  mutable std::mutex mutex_;  // Innermost. Guards the members below.
  ObjectLock rule_{};
  std::map<std::string, std::int64_t> locked_;
};

/// Returns the length of a lock in seconds.
[[nodiscard]] std::int64_t seconds_of(const ObjectLock& lock);

}  // namespace varve::bucket
