// SPDX-License-Identifier: Apache-2.0
// A bucket whose requests take one round trip of a clock that only runs while every thread waits.
#pragma once

#include <dirent.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bucket/bucket.h"

namespace varve::test {

/// Counts round trips: all requests that are waiting when every thread of the process sleeps end
/// together, with one round trip. So the count is that of the requests in sequence, whatever the
/// machine's speed and load. Thread-safe.
class RoundTrips {
 public:
  RoundTrips() : thread_([this] { run(); }) {}
  RoundTrips(const RoundTrips&) = delete;
  RoundTrips& operator=(const RoundTrips&) = delete;
  ~RoundTrips() {
    {
      const std::lock_guard lock(mutex_);
      is_ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  /// Waits for a round trip.
  void wait() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    ++begun_;
    changed_.notify_all();
    const auto until = trips_ + 1;
    changed_.wait(lock, [&] { return trips_ >= until || is_ending_; });
    ++resumed_;
    changed_.notify_all();
  }
  /// Runs `work` after a round trip, in a thread of its own.
  void later(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    works_.push_back(std::move(work));
    ++begun_;
    changed_.notify_all();
  }
  [[nodiscard]] std::uint64_t trips() const {
    const std::lock_guard lock(mutex_);
    return trips_;
  }
  /// Returns the number of requests.
  [[nodiscard]] std::uint64_t requests() const {
    const std::lock_guard lock(mutex_);
    return begun_;
  }

 private:
  // Returns whether all threads but this one wait for something.
  static bool all_sleep() {
    const auto self = std::to_string(::gettid());
    const std::unique_ptr<DIR, int (*)(DIR*)> tasks(::opendir("/proc/self/task"), ::closedir);
    while (const auto* const entry = ::readdir(tasks.get())) {
      const std::string name = entry->d_name;
      if (name[0] == '.' || name == self) continue;
      std::ifstream file("/proc/self/task/" + name + "/stat");
      std::string text;
      std::getline(file, text);
      const auto end = text.rfind(')');
      if (end != std::string::npos && end + 2 < text.size() && text[end + 2] != 'S') return false;
    }
    return true;
  }

  void run() {
    constexpr int kLooks = 4;
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return waiting_ != 0 || !works_.empty() || is_ending_; });
      if (is_ending_) return;
      for (int looks = 0; looks < kLooks; ++looks) {
        const auto begun = begun_;
        lock.unlock();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        const bool sleep = all_sleep();
        lock.lock();
        if (!sleep || begun != begun_) looks = -1;
      }
      ++trips_;
      const auto woken = std::exchange(waiting_, 0);
      resumed_ = 0;
      const auto works = std::exchange(works_, {});
      changed_.notify_all();
      changed_.wait(lock, [&] { return resumed_ == woken; });
      lock.unlock();
      for (const auto& work : works) work();
      lock.lock();
    }
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::function<void()>> works_;
  std::uint64_t waiting_ = 0;  // Threads in wait().
  std::uint64_t resumed_ = 0;  // Of those that the last round trip woke.
  std::uint64_t trips_ = 0;
  std::uint64_t begun_ = 0;
  bool is_ending_ = false;
  std::thread thread_;
};

/// Passes each request on to another bucket, after a round trip.
/// Lifetime: `trips` outlives the bucket and all its requests.
class RoundTripBucket final : public bucket::Bucket {
 public:
  RoundTripBucket(std::unique_ptr<bucket::Bucket> bucket, RoundTrips& trips)
      : bucket_(std::move(bucket)), trips_(trips) {}
  ~RoundTripBucket() override {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return reads_ == 0; });
  }

  Result<void> put(const std::string& name, std::span<const std::span<const std::byte>> parts,
                   const bucket::PutOptions& options) override {
    trips_.wait();
    return bucket_->put(name, parts, options);
  }
  Result<std::size_t> get(const std::string& name, std::uint64_t offset,
                          std::span<std::byte> out) override {
    trips_.wait();
    return bucket_->get(name, offset, out);
  }
  Result<std::vector<std::byte>> get_all(const std::string& name, std::size_t most) override {
    trips_.wait();
    return bucket_->get_all(name, most);
  }
  void read_many(std::vector<bucket::ObjectRead> reads, bucket::ReadCompletion done) override {
    const auto shared = std::make_shared<const bucket::ReadCompletion>(std::move(done));
    {
      const std::lock_guard lock(mutex_);
      reads_ += reads.size();
    }
    for (std::size_t i = 0; i < reads.size(); ++i) {
      trips_.later([this, shared, i, read = reads[i]] {
        (*shared)(i, bucket_->get(read.name, read.offset, read.out));
        const std::lock_guard lock(mutex_);
        --reads_;
        ended_.notify_all();
      });
    }
  }
  Result<bucket::ObjectInfo> head(const std::string& name) override {
    trips_.wait();
    return bucket_->head(name);
  }
  Result<bucket::ListPage> list(const std::string& prefix, const std::string& after,
                                std::size_t most) override {
    trips_.wait();
    return bucket_->list(prefix, after, most);
  }
  Result<void> remove(const std::string& name) override {
    trips_.wait();
    return bucket_->remove(name);
  }
  Result<void> copy_prefix(const std::string& from, std::uint64_t bytes, const std::string& to,
                           const bucket::PutOptions& options) override {
    trips_.wait();
    return bucket_->copy_prefix(from, bytes, to, options);
  }
  Result<void> remove_unfinished(const std::string& prefix) override {
    trips_.wait();
    return bucket_->remove_unfinished(prefix);
  }
  void stop() override { bucket_->stop(); }
  void interrupt_reads() override { bucket_->interrupt_reads(); }
  [[nodiscard]] bucket::Traffic traffic() const override { return bucket_->traffic(); }
  [[nodiscard]] std::string describe() const override { return bucket_->describe(); }

 private:
  const std::unique_ptr<bucket::Bucket> bucket_;
  RoundTrips& trips_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::size_t reads_ = 0;  // In flight.
};

}  // namespace varve::test
