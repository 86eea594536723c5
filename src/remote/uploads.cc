// SPDX-License-Identifier: Apache-2.0
#include "remote/uploads.h"

#include <utility>

namespace varve::remote {

Uploads::~Uploads() {
  threads_.reset();  // Waits for the requests, which use the remaining members.
}

Result<void> Uploads::outcome() const { return error_ ? Result<void>(*error_) : Result<void>(); }

void Uploads::settle(std::vector<Ended> ended) {
  for (auto& one : ended) {
    auto result = std::move(one.result);
    if (result && one.acknowledged) result = one.acknowledged();
    if (!result && !error_) error_ = result.error();
  }
}

// Settles ended requests until `ready` returns true. `ready` reads the members under the lock.
void Uploads::wait_until(const std::function<bool()>& ready) {
  while (true) {
    std::vector<Ended> ended;
    bool done = false;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !ended_.empty() || ready(); });
      ended.swap(ended_);
      done = ready();
    }
    settle(std::move(ended));
    if (done) return;
  }
}

Result<void> Uploads::make_room(std::uint64_t bytes) {
  wait_until([&] {
    return requests_ == 0 || (requests_ < limits_.requests && bytes_ + bytes <= limits_.bytes);
  });
  return outcome();
}

Result<void> Uploads::begin(std::uint64_t bytes, Request request, Request acknowledged) {
  VARVE_TRY(make_room(bytes));
  if (limits_.requests <= 1) {
    std::vector<Ended> ended;
    ended.push_back({request(), std::move(acknowledged)});
    settle(std::move(ended));
    return outcome();
  }
  if (!threads_) threads_ = std::make_unique<base::ThreadPool>(limits_.requests, "varve-upload");
  {
    const std::lock_guard lock(mutex_);
    ++requests_;
    bytes_ += bytes;
  }
  threads_->run([this, bytes, request = std::move(request),
                 acknowledged = std::move(acknowledged)]() mutable {
    auto result = request();
    request = nullptr;  // Frees the bytes before other requests use the memory.
    const std::lock_guard lock(mutex_);
    --requests_;
    bytes_ -= bytes;
    ended_.push_back({std::move(result), std::move(acknowledged)});
    changed_.notify_all();
  });
  return {};
}

Result<void> Uploads::finish() {
  wait_until([&] { return requests_ == 0; });
  return outcome();
}

}  // namespace varve::remote
