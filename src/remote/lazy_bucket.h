// SPDX-License-Identifier: Apache-2.0
// A bucket opened by its first request.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "bucket/bucket.h"
#include "varve/result.h"

namespace varve::remote {

/// Opens another bucket on first use, so a repository can be used while its store does not answer.
/// After a failure, the next request tries again. A first request that reads goes to the store at
/// once. Thread-safe.
class LazyBucket final : public bucket::Bucket {
 public:
  /// Creates the bucket, without having to reach the store.
  using Open = std::function<Result<std::unique_ptr<bucket::Bucket>>()>;
  LazyBucket(Open open, std::string place) : open_(std::move(open)), place_(std::move(place)) {}

  /// Makes reads go to the store without a preceding list, because the caller sends a list at the
  /// same time. The list's error then says why the store fails.
  void assume_reached() { is_reached_ = true; }

  [[nodiscard]] Result<void> put(const std::string& name,
                                 std::span<const std::span<const std::byte>> parts,
                                 const bucket::PutOptions& options) override;
  [[nodiscard]] Result<std::size_t> get(const std::string& name, std::uint64_t offset,
                                        std::span<std::byte> out) override;
  [[nodiscard]] Result<std::vector<std::byte>> get_all(const std::string& name,
                                                       std::size_t bytes_max) override;
  void read_many(std::vector<bucket::ObjectRead> reads, bucket::ReadCompletion done) override;
  [[nodiscard]] Result<bucket::ObjectInfo> head(const std::string& name) override;
  [[nodiscard]] Result<bucket::ListPage> list(const std::string& prefix, const std::string& after,
                                              std::size_t objects_max) override;
  [[nodiscard]] Result<void> remove(const std::string& name) override;
  [[nodiscard]] Result<void> copy_prefix(const std::string& from, std::uint64_t bytes,
                                         const std::string& to,
                                         const bucket::PutOptions& options) override;
  [[nodiscard]] Result<void> remove_unfinished(const std::string& prefix) override;
  [[nodiscard]] Result<void> remove_version(const std::string& name,
                                            const std::string& version) override;
  [[nodiscard]] Result<void> lock(const std::string& name, const ObjectLock& lock) override;
  [[nodiscard]] std::optional<std::int64_t> clock_ahead() const override;
  [[nodiscard]] std::optional<std::chrono::microseconds> round_trip() const override;
  void stop() override;
  void interrupt_reads() override;
  [[nodiscard]] bucket::Traffic traffic() const override;
  [[nodiscard]] std::string describe() const override { return place_; }

 private:
  [[nodiscard]] Result<bucket::Bucket*> made();
  /// Returns the bucket after an answer of its store. Lists to get the answer: the error of a list
  /// says more than the errors of other requests.
  [[nodiscard]] Result<bucket::Bucket*> reached();
  template <typename Answer>
  [[nodiscard]] Result<Answer> ask(const std::function<Result<Answer>(bucket::Bucket&)>& read);

  const Open open_;
  const std::string place_;
  std::atomic<bool> stopped_ = false;
  std::atomic<bucket::Bucket*> made_ = nullptr;  // Equals bucket_ once bucket_ is set.
  std::mutex mutex_;                             // Guards bucket_.
  std::unique_ptr<bucket::Bucket> bucket_;
  std::mutex reach_mutex_;                // Held during a list, because one list suffices.
  std::atomic<bool> is_reached_ = false;  // The store has answered.
};

}  // namespace varve::remote
