// SPDX-License-Identifier: Apache-2.0
#include "store/retrying_store.h"

#include <algorithm>
#include <utility>

namespace varve::store {
namespace {

template <typename T>
bool is_unavailable(const Result<T>& result) {
  return !result && result.error().code() == ErrorCode::kUnavailable;
}

}  // namespace

// A batch of reads, or the part of one that is being repeated.
struct RetryingStore::Batch {
  std::vector<RangeRead> ranges;  // Of the inner store.
  std::vector<std::size_t> positions;
  std::shared_ptr<const ReadCompletion> done;
  int attempts = 0;

  std::mutex mutex;  // Guards the members below.
  std::size_t left = 0;
  std::vector<std::size_t> failed;  // Indexes in `ranges`.
};

class RetryingStore::Open final : public OpenSegment {
 public:
  Open(const RetryingStore& store, std::shared_ptr<OpenSegment> file)
      : store_(store), file_(std::move(file)) {}
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) override {
    return store_.repeat([&] { return file_->read_at(offset, out); });
  }
  Result<std::uint64_t> size() override {
    return store_.repeat([&] { return file_->size(); });
  }
  void will_read(std::uint64_t offset, std::uint64_t bytes) override {
    file_->will_read(offset, bytes);
  }
  bool is_cached(std::uint64_t offset, std::uint64_t bytes) override {
    return file_->is_cached(offset, bytes);
  }
  [[nodiscard]] const std::shared_ptr<OpenSegment>& inner() const { return file_; }

 private:
  const RetryingStore& store_;
  const std::shared_ptr<OpenSegment> file_;
};

class RetryingStore::Appender final : public SegmentAppender {
 public:
  Appender(const RetryingStore& store, std::unique_ptr<SegmentAppender> writer)
      : store_(store), writer_(std::move(writer)) {}
  Result<void> append(std::span<const std::span<const std::byte>> parts) override {
    return store_.repeat([&] { return writer_->append(parts); });
  }

 private:
  const RetryingStore& store_;
  const std::unique_ptr<SegmentAppender> writer_;
};

RetryingStore::RetryingStore(std::unique_ptr<SegmentStore> store, RetryPolicy policy)
    : store_(std::move(store)), policy_(std::move(policy)) {}

RetryingStore::~RetryingStore() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return in_flight_ == 0; });
  stopping_ = true;
  changed_.notify_all();
  lock.unlock();
  if (thread_.joinable()) thread_.join();
}

void RetryingStore::wait(int attempts) const {
  auto time = policy_.wait_first;
  for (int i = 1; i < attempts && time < policy_.wait_max; ++i) time *= 2;
  time = std::min(time, policy_.wait_max);
  if (policy_.sleep) {
    policy_.sleep(time);
  } else {
    std::this_thread::sleep_for(time);
  }
}

template <typename Work>
auto RetryingStore::repeat(const Work& work) const -> decltype(work()) {
  for (int attempts = 1;; ++attempts) {
    auto result = work();
    if (!is_unavailable(result) || attempts >= policy_.attempts_max) return result;
    wait(attempts);
  }
}

Result<void> RetryingStore::prepare() {
  return repeat([&] { return store_->prepare(); });
}

Result<std::shared_ptr<OpenSegment>> RetryingStore::open(StoredFile file, ReadMode mode) {
  VARVE_TRY_ASSIGN(auto opened, repeat([&] { return store_->open(file, mode); }));
  return std::shared_ptr<OpenSegment>(std::make_shared<Open>(*this, std::move(opened)));
}

void RetryingStore::read_many(std::vector<RangeRead> ranges, ReadCompletion done) {
  if (ranges.empty()) return;
  const auto batch = std::make_shared<Batch>();
  batch->done = std::make_shared<const ReadCompletion>(std::move(done));
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    ranges[i].file = static_cast<Open&>(*ranges[i].file).inner();
    batch->positions.push_back(i);
  }
  batch->ranges = std::move(ranges);
  {
    const std::lock_guard lock(mutex_);
    ++in_flight_;
  }
  submit(batch);
}

// Passes a batch to the store. The last of its completions decides whether some are repeated.
void RetryingStore::submit(const std::shared_ptr<Batch>& batch) {
  batch->left = batch->ranges.size();
  ++batch->attempts;
  const bool is_last_attempt = batch->attempts >= policy_.attempts_max;
  store_->read_many(batch->ranges,
                    [this, batch, is_last_attempt](std::size_t at, Result<std::size_t> got) {
                      const bool repeats = is_unavailable(got) && !is_last_attempt;
                      if (!repeats) (*batch->done)(batch->positions[at], std::move(got));
                      {
                        const std::lock_guard lock(batch->mutex);
                        if (repeats) batch->failed.push_back(at);
                        if (--batch->left != 0) return;
                      }
                      const std::lock_guard lock(mutex_);
                      if (batch->failed.empty()) {
                        --in_flight_;
                      } else {
                        to_repeat_.push_back(batch);
                        if (!thread_.joinable())
                          thread_ = std::thread([this] { repeat_batches(); });
                      }
                      changed_.notify_all();
                    });
}

void RetryingStore::repeat_batches() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !to_repeat_.empty(); });
    if (to_repeat_.empty()) return;
    const auto was = std::move(to_repeat_.front());
    to_repeat_.pop_front();
    lock.unlock();
    const auto batch = std::make_shared<Batch>();
    batch->done = was->done;
    batch->attempts = was->attempts;
    for (const auto at : was->failed) {
      batch->ranges.push_back(was->ranges[at]);
      batch->positions.push_back(was->positions[at]);
    }
    wait(batch->attempts);
    submit(batch);
    lock.lock();
  }
}

Result<std::unique_ptr<SegmentAppender>> RetryingStore::create(SegmentNumber segment) {
  VARVE_TRY_ASSIGN(auto writer, repeat([&] { return store_->create(segment); }));
  return std::unique_ptr<SegmentAppender>(std::make_unique<Appender>(*this, std::move(writer)));
}

Result<void> RetryingStore::write_again(SegmentNumber segment, std::uint64_t offset,
                                        std::span<const std::byte> bytes) {
  return repeat([&] { return store_->write_again(segment, offset, bytes); });
}

Result<void> RetryingStore::put(StoredFile file,
                                std::span<const std::span<const std::byte>> parts) {
  return repeat([&] { return store_->put(file, parts); });
}

Result<void> RetryingStore::correct(StoredFile file, const std::vector<Correction>& corrections) {
  return repeat([&] { return store_->correct(file, corrections); });
}

Result<void> RetryingStore::cut(StoredFile file, std::uint64_t bytes) {
  return repeat([&] { return store_->cut(file, bytes); });
}

Result<void> RetryingStore::remove(StoredFile file) {
  bool is_first = true;
  return repeat([&]() -> Result<void> {
    auto removed = store_->remove(file);
    const bool again = !std::exchange(is_first, false);
    if (again && !removed && removed.error().code() == ErrorCode::kNotFound) return {};
    return removed;
  });
}

Result<void> RetryingStore::remove_unfinished(StoredKind kind) {
  return repeat([&] { return store_->remove_unfinished(kind); });
}

Result<std::vector<StoredFile>> RetryingStore::list(StoredKind kind) {
  return repeat([&] { return store_->list(kind); });
}

Result<std::uint64_t> RetryingStore::size(StoredFile file) {
  return repeat([&] { return store_->size(file); });
}

Result<SpaceInfo> RetryingStore::space() {
  return repeat([&] { return store_->space(); });
}

std::unique_ptr<SegmentStore> with_retries(std::unique_ptr<SegmentStore> store,
                                           RetryPolicy policy) {
  if (!store->answers_later() || store->repeats_requests()) return store;
  return std::make_unique<RetryingStore>(std::move(store), std::move(policy));
}

}  // namespace varve::store
