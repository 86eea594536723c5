// SPDX-License-Identifier: Apache-2.0
// Repeats what a distant store did not answer. The only place that does.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "store/segment_store.h"
#include "varve/result.h"

namespace varve::store {

/// How often and how fast RetryingStore repeats. The wait doubles with each attempt.
struct RetryPolicy {
  int attempts_max = 6;  ///< Attempts in all; at least 1.
  std::chrono::milliseconds wait_first{100};
  std::chrono::milliseconds wait_max{5000};
  /// Waits; std::this_thread::sleep_for() if empty. Called from several threads.
  std::function<void(std::chrono::milliseconds)> sleep;
};

/// A store that repeats operations of another one that fail with kUnavailable. After the last
/// attempt it returns that error. Thread-safe, as the other store is.
///
/// It repeats only what may happen twice: reading, listing, preparing, creating (which empties a
/// file), put(), correct(), write_again(), cut() and remove() (a file that is missing at a further
/// attempt was removed by an earlier one), and append(), since after an error the file's end is
/// where it was. It does not repeat sync() and sync_names(): after an error, bytes may be lost, and
/// the caller must write them again.
class RetryingStore final : public SegmentStore {
 public:
  RetryingStore(std::unique_ptr<SegmentStore> store, RetryPolicy policy);
  RetryingStore(const RetryingStore&) = delete;
  RetryingStore& operator=(const RetryingStore&) = delete;
  /// Waits for the batches that are being repeated.
  ~RetryingStore() override;

  [[nodiscard]] Result<void> prepare() override;
  [[nodiscard]] Result<std::shared_ptr<OpenSegment>> open(StoredFile file, ReadMode mode) override;
  /// Repeats the failed ranges of a batch in a thread of its own, together.
  void read_many(std::vector<RangeRead> ranges, ReadCompletion done) override;
  [[nodiscard]] bool answers_later() const override { return store_->answers_later(); }
  [[nodiscard]] Result<std::unique_ptr<SegmentAppender>> create(SegmentNumber segment) override;
  [[nodiscard]] Result<void> sync(StoredFile file) override { return store_->sync(file); }
  [[nodiscard]] Result<void> sync_names(StoredKind kind) override {
    return store_->sync_names(kind);
  }
  [[nodiscard]] Result<void> write_again(SegmentNumber segment, std::uint64_t offset,
                                         std::span<const std::byte> bytes) override;
  [[nodiscard]] Result<void> put(StoredFile file,
                                 std::span<const std::span<const std::byte>> parts) override;
  [[nodiscard]] Result<void> correct(StoredFile file,
                                     const std::vector<Correction>& corrections) override;
  [[nodiscard]] Result<void> cut(StoredFile file, std::uint64_t bytes) override;
  [[nodiscard]] Result<void> remove(StoredFile file) override;
  [[nodiscard]] Result<void> remove_unfinished(StoredKind kind) override;
  [[nodiscard]] Result<std::vector<StoredFile>> list(StoredKind kind) override;
  [[nodiscard]] Result<std::uint64_t> size(StoredFile file) override;
  [[nodiscard]] Result<SpaceInfo> space() override;
  [[nodiscard]] std::string describe() const override { return store_->describe(); }
  [[nodiscard]] std::string describe(StoredFile file) const override {
    return store_->describe(file);
  }

 private:
  struct Batch;
  class Open;
  class Appender;

  /// Calls `work` until it succeeds, fails otherwise, or was called often enough.
  template <typename Work>
  auto repeat(const Work& work) const -> decltype(work());
  void wait(int attempts) const;
  void submit(const std::shared_ptr<Batch>& batch);
  void repeat_batches();

  const std::unique_ptr<SegmentStore> store_;
  const RetryPolicy policy_;

  std::mutex mutex_;  // Innermost. Guards the members below.
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Batch>> to_repeat_;
  std::size_t in_flight_ = 0;  // Batches that were submitted and have not ended.
  bool stopping_ = false;
  std::thread thread_;  // Runs repeat_batches(); started with the first failure.
};

/// Returns a store that repeats what `store` does not answer, or `store` itself if it always
/// answers or repeats its requests itself.
[[nodiscard]] std::unique_ptr<SegmentStore> with_retries(std::unique_ptr<SegmentStore> store,
                                                         RetryPolicy policy);

}  // namespace varve::store
