// SPDX-License-Identifier: Apache-2.0
#include "fs/eager_receiver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

namespace varve::fs {
namespace {

using std::chrono::microseconds;

/// A kernel with a clock of its own: each question takes a microsecond, and requests come so
/// long after the answer to the one before.
class FakeKernel {
 public:
  EagerReceiver::Calls calls() {
    return {.try_receive = [this](fuse_buf*) { return ask(); },
            .wait = [this] { return sleep(); },
            .now = [this] { return now_; }};
  }
  /// The next request comes after this pause.
  void send_after(microseconds pause) { arrives_ = now_ + pause; }
  /// As if another thread had the processor for so long.
  void put_aside_at_third_question(microseconds time) {
    aside_ = time;
    aside_at_ = questions_ + 3;
  }
  [[nodiscard]] int sleeps() const { return sleeps_; }
  [[nodiscard]] int questions() const { return questions_; }

 private:
  int ask() {
    ++questions_;
    now_ += microseconds(1) + (questions_ == aside_at_ ? aside_ : microseconds(0));
    return now_ >= arrives_ ? 1 : -EAGAIN;
  }
  bool sleep() {
    ++sleeps_;
    now_ = std::max(now_, arrives_) + microseconds(40);
    return true;
  }
  EagerReceiver::Clock::time_point now_{};
  EagerReceiver::Clock::time_point arrives_{};
  microseconds aside_{0};
  int aside_at_ = 0;
  int sleeps_ = 0;
  int questions_ = 0;
};

void serve(EagerReceiver& receiver, FakeKernel& kernel, int requests, microseconds pause) {
  for (int i = 0; i < requests; ++i) {
    kernel.send_after(pause);
    EXPECT_EQ(receiver.receive(nullptr), 1);
  }
}

TEST(EagerReceiver, SleepsNoMoreWhenRequestsComeSoon) {
  FakeKernel kernel;
  EagerReceiver receiver(kernel.calls(), microseconds(50));
  serve(receiver, kernel, 20, microseconds(20));
  EXPECT_LE(kernel.sleeps(), 2);
}

TEST(EagerReceiver, SleepsWhenRequestsComeLate) {
  FakeKernel kernel;
  EagerReceiver receiver(kernel.calls(), microseconds(50));
  serve(receiver, kernel, 20, microseconds(20));
  const int before = kernel.questions();
  serve(receiver, kernel, 100, microseconds(5000));
  // A few times it waits in vain, then it asks once before and once after each sleep.
  EXPECT_LE(kernel.questions() - before, 2 * 100 + 4 * 52);
}

TEST(EagerReceiver, OnBusyMachineRestsFromAsking) {
  FakeKernel kernel;
  EagerReceiver receiver(kernel.calls(), microseconds(50));
  serve(receiver, kernel, 20, microseconds(20));
  const int before = kernel.sleeps();
  kernel.put_aside_at_third_question(microseconds(31));
  serve(receiver, kernel, 100, microseconds(45));
  EXPECT_EQ(kernel.sleeps() - before, 100);
  serve(receiver, kernel, 1000, microseconds(20));
  EXPECT_LT(kernel.sleeps() - before, 400);
}

TEST(EagerReceiver, ZeroAlwaysSleeps) {
  FakeKernel kernel;
  EagerReceiver receiver(kernel.calls(), microseconds(0));
  serve(receiver, kernel, 20, microseconds(20));
  EXPECT_EQ(kernel.sleeps(), 20);
}

}  // namespace
}  // namespace varve::fs
