// SPDX-License-Identifier: Apache-2.0
// A segment store in memory whose reads take time and may fail, as those of a distant bucket.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <queue>
#include <thread>
#include <utility>

#include "store/segment_store.h"

namespace varve::test {

/// Answers each read `latency` after it was submitted, however many are in flight. Thread-safe.
class MemorySegmentStore final : public store::SegmentStore {
 public:
  using Clock = std::chrono::steady_clock;
  using Bytes = std::vector<std::byte>;

  explicit MemorySegmentStore(std::chrono::milliseconds latency = {}) : latency_(latency) {
    thread_ = std::thread([this] { answer(); });
  }
  ~MemorySegmentStore() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    ready_.notify_all();
    thread_.join();
  }

  /// Makes the next `count` reads fail with kUnavailable.
  void fail_reads(std::size_t count) {
    const std::lock_guard lock(mutex_);
    reads_to_fail_ = count;
  }
  /// As fail_reads(), but a read outside read_many() succeeds, whenever it comes.
  void fail_batched_reads(std::size_t count) {
    const std::lock_guard lock(mutex_);
    batched_reads_to_fail_ = count;
  }
  /// Returns the highest number of reads that were in flight at once.
  [[nodiscard]] std::size_t in_flight_max() const {
    const std::lock_guard lock(mutex_);
    return in_flight_max_;
  }

  Result<void> prepare() override { return {}; }
  Result<std::shared_ptr<store::OpenSegment>> open(store::StoredFile file,
                                                   store::ReadMode /*mode*/) override {
    const std::lock_guard lock(mutex_);
    const auto found = files_.find(file);
    if (found == files_.end()) return missing(file);
    return std::shared_ptr<store::OpenSegment>(std::make_shared<Open>(*this, found->second));
  }
  void read_many(std::vector<store::RangeRead> ranges, store::ReadCompletion done) override {
    const auto shared = std::make_shared<store::ReadCompletion>(std::move(done));
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      waiting_.push({Clock::now() + latency_, std::move(ranges[i]), i, shared});
    }
    in_flight_max_ = std::max(in_flight_max_, waiting_.size());
    ready_.notify_all();
  }
  bool answers_later() const override { return latency_.count() != 0; }
  Result<std::unique_ptr<store::SegmentAppender>> create(SegmentNumber segment) override {
    const std::lock_guard lock(mutex_);
    auto& slot = files_[segment];
    slot = std::make_shared<Bytes>();
    return std::unique_ptr<store::SegmentAppender>(std::make_unique<Appender>(*this, slot));
  }
  Result<void> sync(store::StoredFile file) override { return present(file); }
  Result<void> sync_names(store::StoredKind /*kind*/) override { return {}; }
  Result<void> write_again(SegmentNumber segment, std::uint64_t offset,
                           std::span<const std::byte> bytes) override {
    return correct(segment, {{offset, {bytes.begin(), bytes.end()}}});
  }
  Result<void> put(store::StoredFile file,
                   std::span<const std::span<const std::byte>> parts) override {
    const std::lock_guard lock(mutex_);
    auto fresh = std::make_shared<Bytes>();
    for (const auto& part : parts) fresh->insert(fresh->end(), part.begin(), part.end());
    files_[file] = std::move(fresh);
    return {};
  }
  Result<void> correct(store::StoredFile file,
                       const std::vector<store::Correction>& corrections) override {
    const std::lock_guard lock(mutex_);
    const auto& slot = files_[file];
    auto fresh = slot ? std::make_shared<Bytes>(*slot) : std::make_shared<Bytes>();
    for (const auto& one : corrections) {
      fresh->resize(std::max<std::size_t>(fresh->size(), one.offset + one.bytes.size()));
      std::copy(one.bytes.begin(), one.bytes.end(),
                fresh->begin() + static_cast<std::ptrdiff_t>(one.offset));
    }
    files_[file] = std::move(fresh);
    return {};
  }
  Result<void> cut(store::StoredFile file, std::uint64_t bytes) override {
    VARVE_TRY(present(file));
    const std::lock_guard lock(mutex_);
    files_[file]->resize(bytes);
    return {};
  }
  Result<void> remove(store::StoredFile file) override {
    VARVE_TRY(present(file));
    const std::lock_guard lock(mutex_);
    files_.erase(file);
    return {};
  }
  Result<void> remove_unfinished(store::StoredKind /*kind*/) override { return {}; }
  Result<std::vector<store::StoredFile>> list(store::StoredKind kind) override {
    const std::lock_guard lock(mutex_);
    std::vector<store::StoredFile> all;
    for (const auto& entry : files_) {
      if (store::kind_of(entry.first) == kind) all.push_back(entry.first);
    }
    return all;
  }
  Result<std::uint64_t> size(store::StoredFile file) override {
    VARVE_TRY(present(file));
    const std::lock_guard lock(mutex_);
    return files_[file]->size();
  }
  Result<SpaceInfo> space() override { return SpaceInfo{}; }
  std::string describe() const override { return "memory"; }
  std::string describe(store::StoredFile file) const override {
    return "memory/" + std::to_string(file.index());
  }

 private:
  using Held = std::shared_ptr<Bytes>;

  class Open final : public store::OpenSegment {
   public:
    Open(MemorySegmentStore& store, Held bytes) : store_(store), bytes_(std::move(bytes)) {}
    Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) override {
      std::this_thread::sleep_for(store_.latency_);
      return read_now(offset, out, nullptr);
    }
    Result<std::uint64_t> size() override {
      const std::lock_guard lock(store_.mutex_);
      return bytes_->size();
    }
    /// Fails if reads are to fail, or those of the read's kind, `to_fail`, which may be nullptr.
    Result<std::size_t> read_now(std::uint64_t offset, std::span<std::byte> out,
                                 std::size_t* to_fail) {
      const std::lock_guard lock(store_.mutex_);
      if (to_fail == nullptr || *to_fail == 0) to_fail = &store_.reads_to_fail_;
      if (*to_fail > 0) {
        --*to_fail;
        return Error(ErrorCode::kUnavailable, "the store does not answer; try again");
      }
      if (offset >= bytes_->size()) return std::size_t{0};
      const auto got = std::min<std::size_t>(out.size(), bytes_->size() - offset);
      std::memcpy(out.data(), bytes_->data() + offset, got);
      return got;
    }

   private:
    MemorySegmentStore& store_;
    const Held bytes_;
  };
  class Appender final : public store::SegmentAppender {
   public:
    Appender(MemorySegmentStore& store, Held bytes) : store_(store), bytes_(std::move(bytes)) {}
    Result<void> append(std::span<const std::span<const std::byte>> parts) override {
      const std::lock_guard lock(store_.mutex_);
      for (const auto& part : parts) bytes_->insert(bytes_->end(), part.begin(), part.end());
      return {};
    }

   private:
    MemorySegmentStore& store_;
    const Held bytes_;
  };
  struct Waiting {
    Clock::time_point due;
    store::RangeRead range;
    std::size_t position = 0;
    std::shared_ptr<store::ReadCompletion> done;
  };

  static Error missing(store::StoredFile /*file*/) {
    return {ErrorCode::kNotFound, "there is no such file"};
  }
  Result<void> present(store::StoredFile file) {
    const std::lock_guard lock(mutex_);
    if (!files_.contains(file)) return missing(file);
    return {};
  }
  void answer() {
    std::unique_lock lock(mutex_);
    while (true) {
      ready_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      if (Clock::now() < waiting_.front().due) {
        ready_.wait_until(lock, waiting_.front().due, [] { return false; });
      }
      auto next = std::move(waiting_.front());
      waiting_.pop();
      lock.unlock();
      auto& file = static_cast<Open&>(*next.range.file);
      (*next.done)(next.position,
                   file.read_now(next.range.offset, next.range.out, &batched_reads_to_fail_));
      lock.lock();
    }
  }

  const std::chrono::milliseconds latency_;
  mutable std::mutex mutex_;
  std::condition_variable ready_;
  std::map<store::StoredFile, Held> files_;
  std::queue<Waiting> waiting_;
  std::size_t in_flight_max_ = 0;
  std::size_t reads_to_fail_ = 0;
  std::size_t batched_reads_to_fail_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace varve::test
