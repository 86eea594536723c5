// SPDX-License-Identifier: Apache-2.0
#include "remote/replication_thread.h"

#include <algorithm>
#include <chrono>

#include "base/thread_pool.h"
#include "remote/store_errors.h"

namespace varve::remote {

namespace {

using std::chrono::milliseconds;
constexpr milliseconds kPause{1000};
// The user may replace credentials, or repair the store.
constexpr milliseconds kLastingPause{5 * 60 * 1000};

}  // namespace

void ReplicationThread::request_head() { request(&ReplicationThread::wants_head_); }

void ReplicationThread::request_early() { request(&ReplicationThread::wants_early_); }

void ReplicationThread::request(bool ReplicationThread::*what) {
  const std::lock_guard lock(mutex_);
  this->*what = true;
  if (!thread_.joinable() && !stopping_) {
    thread_ = std::jthread([this](const std::stop_token& stop) {
      base::name_this_thread("varve-bucket");
      run(stop);
    });
  }
  wake_.notify_all();
}

bool ReplicationThread::wait_for_head(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (true) {
    if (!wake_.wait(lock, stop, [this] { return wants_head_ || wants_early_; })) return false;
    const bool is_early = std::exchange(wants_early_, false);
    if (!is_early || wants_head_) break;
    lock.unlock();
    work_.upload_early();
    lock.lock();
  }
  // Arranging follows a seal and replaces data of the sealed version: one head has both.
  static_cast<void>(wake_.wait_for(lock, stop, kPause, [] { return false; }));
  if (stop.stop_requested()) return false;
  wants_head_ = false;
  return true;
}

void ReplicationThread::run(const std::stop_token& stop) {
  auto wait = kAttemptPauseFirst;
  while (wait_for_head(stop)) {
    const auto done = work_.replicate();
    if (done) {
      wait = kAttemptPauseFirst;
      continue;
    }
    if (stop.stop_requested()) return;
    work_.failed(done.error());
    if (done.error().code() == ErrorCode::kLocked) continue;  // Fenced for good.
    std::unique_lock lock(mutex_);
    if (is_passing(done.error())) {
      static_cast<void>(wake_.wait_for(lock, stop, wait, [] { return false; }));
      wait = std::min(wait * 2, kAttemptPauseMax);
    } else {
      static_cast<void>(wake_.wait_for(lock, stop, kLastingPause, [this] { return wants_head_; }));
    }
    wants_head_ = true;
  }
}

void ReplicationThread::stop(const std::function<void()>& interrupt) {
  std::jthread ended;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    ended = std::move(thread_);
  }
  if (!ended.joinable()) return;
  ended.request_stop();
  if (interrupt) interrupt();
  ended.join();
}

}  // namespace varve::remote
