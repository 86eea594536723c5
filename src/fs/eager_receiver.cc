// SPDX-License-Identifier: Apache-2.0
#include "fs/eager_receiver.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace varve::fs {
namespace {

// Limits of the score. Each request that comes soon adds 1. Polling starts only after many early
// requests, and a few late requests end the polling: a vain poll wastes processor time.
constexpr int kScoreMax = 8;
constexpr int kScoreMin = -8;
constexpr int kLateCost = 4;
// Score after the thread lost the processor while polling.
constexpr int kCrowdedScore = -256;
// Time between two polls from which the thread counts as preempted. Normally, polls are a few
// microseconds apart.
constexpr auto kPreempted = std::chrono::microseconds(30);
// Time between the arrival of a request and the wake-up of a sleeping thread.
constexpr auto kWakeUp = std::chrono::microseconds(100);

}  // namespace

EagerReceiver::EagerReceiver(Calls calls, std::chrono::microseconds longest)
    : calls_(std::move(calls)), longest_(longest) {}

int EagerReceiver::receive(fuse_buf* buffer) {
  const int first = calls_.try_receive(buffer);
  if (first != -EAGAIN) return first;
  const auto begin = longest_ > Clock::duration::zero() ? calls_.now() : Clock::time_point();
  if (score_ > 0) {
    const int got = poll(buffer, begin);
    if (got != -EAGAIN) return got;
  }
  if (!calls_.wait()) return -EINTR;
  if (longest_ > Clock::duration::zero() && score_ < kScoreMax) learn(calls_.now() - begin);
  const int got = calls_.try_receive(buffer);
  return got == -EAGAIN ? -EINTR : got;  // Another process may have received the request.
}

/// Polls for a request. Returns -EAGAIN if no request came in time.
int EagerReceiver::poll(fuse_buf* buffer, Clock::time_point begin) {
  auto last = begin;
  while (true) {
    const int got = calls_.try_receive(buffer);
    const auto now = calls_.now();
    if (got != -EAGAIN) {
      score_ = std::min(score_ + 1, kScoreMax);
      return got;
    }
    if (now - last > kPreempted) {
      score_ = kCrowdedScore;
      return got;
    }
    if (now - begin > longest_) {
      score_ -= kLateCost;
      return got;
    }
    last = now;
  }
}

void EagerReceiver::learn(Clock::duration pause) {
  if (pause < longest_ + kWakeUp) {
    ++score_;
  } else if (score_ > kScoreMin) {
    --score_;
  }
}

}  // namespace varve::fs
