// SPDX-License-Identifier: Apache-2.0
// A bucket in memory that is lent to repositories.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bucket/bucket.h"
#include "support/memory_bucket.h"

namespace varve::test {

/// Lends a bucket that lives longer than its repository: late changes still happen in it.
class LentBucket : public bucket::Bucket {
 public:
  explicit LentBucket(std::shared_ptr<MemoryBucket> bucket) : bucket_(std::move(bucket)) {}
  Result<void> put(const std::string& name, std::span<const std::span<const std::byte>> parts,
                   const bucket::PutOptions& options) override {
    return bucket_->put(name, parts, options);
  }
  Result<std::size_t> get(const std::string& name, std::uint64_t offset,
                          std::span<std::byte> out) override {
    return bucket_->get(name, offset, out);
  }
  Result<std::vector<std::byte>> get_all(const std::string& name, std::size_t max) override {
    return bucket_->get_all(name, max);
  }
  void read_many(std::vector<bucket::ObjectRead> reads, bucket::ReadCompletion done) override {
    bucket_->read_many(std::move(reads), std::move(done));
  }
  Result<bucket::ObjectInfo> head(const std::string& name) override { return bucket_->head(name); }
  Result<bucket::ListPage> list(const std::string& prefix, const std::string& after,
                                std::size_t max) override {
    return bucket_->list(prefix, after, max);
  }
  Result<void> remove(const std::string& name) override { return bucket_->remove(name); }
  Result<void> copy_prefix(const std::string& from, std::uint64_t bytes, const std::string& to,
                           const bucket::PutOptions& options) override {
    return bucket_->copy_prefix(from, bytes, to, options);
  }
  Result<void> remove_unfinished(const std::string& prefix) override {
    return bucket_->remove_unfinished(prefix);
  }
  Result<void> lock(const std::string& name, const ObjectLock& lock) override {
    return bucket_->lock(name, lock);
  }
  [[nodiscard]] std::optional<std::int64_t> clock_ahead() const override {
    return bucket_->clock_ahead();
  }
  void stop() override { bucket_->stop(); }
  void interrupt_reads() override { bucket_->interrupt_reads(); }
  [[nodiscard]] bucket::Traffic traffic() const override { return bucket_->traffic(); }
  [[nodiscard]] std::string describe() const override { return bucket_->describe(); }

 private:
  const std::shared_ptr<MemoryBucket> bucket_;
};

}  // namespace varve::test
