// SPDX-License-Identifier: Apache-2.0
#include "maintain/parallel_verifier.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/thread_pool.h"

namespace varve::maintain {

namespace {

constexpr unsigned kThreadsMax = 16;
constexpr unsigned kThreadsPerCore = 2;     // One waits for the disk while the other computes.
constexpr std::size_t kAheadPerThread = 4;  // Limit of verdicts waiting for earlier verdicts.
// Limits of containers requested from a distant store in advance, without and with a rate limit.
// The store bounds the memory of arrived containers.
constexpr std::size_t kAnnounced = 64;
constexpr std::size_t kAnnouncedSlowly = 2;

/// Distributes jobs to threads and returns their verdicts in order.
class Pool {
 public:
  Pool(const format::DataCodecs& codecs, store::SegmentReader& reader, StoreId store_id,
       const std::vector<VerifyJob>& jobs, unsigned threads, std::size_t announced_most)
      : codecs_(codecs),
        reader_(reader),
        store_id_(store_id),
        jobs_(jobs),
        ahead_(threads * kAheadPerThread),
        announced_most_(announced_most) {
    for (unsigned i = 0; i < threads; ++i) {
      threads_.emplace_back([this] {
        base::name_this_thread("varve-verify");
        work();
      });
    }
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() {
    {
      const std::lock_guard lock(mutex_);
      next_ = jobs_.size();
    }
    room_.notify_all();
    for (auto& thread : threads_) thread.join();
  }

  /// Waits for the verdict of the next job and returns the verdict.
  ContainerVerdict take() {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return verdicts_.contains(taken_); });
    auto verdict = std::move(verdicts_.at(taken_));
    verdicts_.erase(taken_++);
    lock.unlock();
    room_.notify_all();
    return verdict;
  }

 private:
  std::optional<std::size_t> next_job() {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [this] { return next_ >= jobs_.size() || next_ < taken_ + ahead_; });
    if (next_ >= jobs_.size()) return std::nullopt;
    const auto job = next_++;
    const auto begin = std::max(announced_, job);
    announced_ = std::max(begin, std::min(job + announced_most_, jobs_.size()));
    const auto end = announced_;
    lock.unlock();
    for (auto at = begin; at < end; ++at) announce(jobs_[at]);
    return job;
  }
  void announce(const VerifyJob& job) {
    if (job.level == VerifyLevel::kHeader) {
      reader_.will_read_header(job.record);
    } else {
      reader_.will_read_all(job.record);
    }
  }
  ContainerVerdict verify(const VerifyJob& job, VerifyMemory& memory) {
    return verify_container(codecs_, reader_, store_id_, job.record, job.level, memory);
  }
  void work() {
    VerifyMemory memory;
    while (const auto job = next_job()) {
      auto verdict = verify(jobs_[*job], memory);
      // The answer of a distant store may have been altered on the way.
      const bool is_suspect = verdict.error || !verdict.faults.empty();
      if (is_suspect && !verdict.unavailable && reader_.drop(jobs_[*job].record)) {
        verdict = verify(jobs_[*job], memory);
      }
      const std::lock_guard lock(mutex_);
      verdicts_.emplace(*job, std::move(verdict));
      done_.notify_all();
    }
  }

  const format::DataCodecs& codecs_;
  store::SegmentReader& reader_;
  const StoreId store_id_;
  const std::vector<VerifyJob>& jobs_;
  const std::size_t ahead_;
  const std::size_t announced_most_;  // Limit of requested jobs, counted from the next job on.
  std::mutex mutex_;
  std::condition_variable room_;
  std::condition_variable done_;
  std::map<std::size_t, ContainerVerdict> verdicts_;
  std::size_t next_ = 0;
  std::size_t taken_ = 0;
  std::size_t announced_ = 0;  // All jobs with a lower index are requested.
  std::vector<std::thread> threads_;
};

}  // namespace

bool verify_containers(const format::DataCodecs& codecs, store::SegmentReader& reader,
                       StoreId store_id, const std::vector<VerifyJob>& jobs, const VerifyPace& pace,
                       const std::function<void(const VerifyJob&, ContainerVerdict&&)>& handle) {
  if (jobs.empty()) return true;
  const unsigned wanted = std::max(std::thread::hardware_concurrency(), 1U) * kThreadsPerCore;
  const unsigned threads = pace.threads != 0 ? pace.threads : std::min(wanted, kThreadsMax);
  const bool is_slow = pace.bytes_per_second != 0;
  const bool is_distant = pace.is_distant || reader.answers_later();
  Pool pool(codecs, reader, store_id, jobs, is_slow ? 1 : threads,
            !is_distant ? 0
            : is_slow   ? kAnnouncedSlowly
                        : kAnnounced);
  const auto begin = std::chrono::steady_clock::now();
  double passed = 0;
  std::mutex mutex;
  std::condition_variable_any stopped;
  for (const auto& job : jobs) {
    if (pace.stop.stop_requested()) return false;
    auto verdict = pool.take();
    passed += static_cast<double>(verdict.bytes_read);
    handle(job, std::move(verdict));
    if (pace.bytes_per_second == 0) continue;
    const std::chrono::duration<double> due(passed / static_cast<double>(pace.bytes_per_second));
    std::unique_lock lock(mutex);
    stopped.wait_until(lock, pace.stop,
                       begin + std::chrono::duration_cast<std::chrono::steady_clock::duration>(due),
                       [] { return false; });
  }
  return true;
}

}  // namespace varve::maintain
