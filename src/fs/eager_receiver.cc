// SPDX-License-Identifier: Apache-2.0
#include "fs/eager_receiver.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace varve::fs {
namespace {

// So many more requests in a row have to come soon before asking begins, and few that come
// late end it: what is asked in vain is time that others could have had.
constexpr int kScoreMax = 8;
constexpr int kScoreMin = -8;
constexpr int kLateCost = 4;
// After it was put aside, asking rests for so many requests that come soon.
constexpr int kCrowdedScore = -256;
// Between two questions pass a few microseconds, unless another thread had the processor.
constexpr auto kPutAside = std::chrono::microseconds(30);
// A sleeper wakes so much later than the request comes.
constexpr auto kWakeUp = std::chrono::microseconds(100);

}  // namespace

EagerReceiver::EagerReceiver(Calls calls, std::chrono::microseconds longest)
    : calls_(std::move(calls)), longest_(longest) {}

int EagerReceiver::receive(fuse_buf* buffer) {
  const int first = calls_.try_receive(buffer);
  if (first != -EAGAIN) return first;
  const auto begin = longest_ > Clock::duration::zero() ? calls_.now() : Clock::time_point();
  if (score_ > 0) {
    const int got = ask(buffer, begin);
    if (got != -EAGAIN) return got;
  }
  if (!calls_.wait()) return -EINTR;
  if (longest_ > Clock::duration::zero() && score_ < kScoreMax) learn(calls_.now() - begin);
  const int got = calls_.try_receive(buffer);
  return got == -EAGAIN ? -EINTR : got;  // Another process may have taken it.
}

/// -EAGAIN: nothing came.
int EagerReceiver::ask(fuse_buf* buffer, Clock::time_point begin) {
  auto last = begin;
  while (true) {
    const int got = calls_.try_receive(buffer);
    const auto now = calls_.now();
    if (got != -EAGAIN) {
      score_ = std::min(score_ + 1, kScoreMax);
      return got;
    }
    if (now - last > kPutAside) {
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
