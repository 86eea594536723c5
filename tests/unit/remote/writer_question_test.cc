// SPDX-License-Identifier: Apache-2.0
#include "remote/writer_question.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>

namespace varve::remote {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
constexpr WriterQuestion::Ages kNew{milliseconds(0), milliseconds(0)};
constexpr WriterQuestion::Ages kOfAnHour{hours(1), hours(1)};
constexpr milliseconds kLong = hours(1);  // No test waits for it.

TEST(WriterQuestion, EachCallForANewAnswerAsks) {
  std::atomic<int> asked = 0;
  WriterQuestion question([&] { return ++asked > 0; }, kLong);
  for (int i = 1; i <= 3; ++i) {
    question.ask(kNew);
    EXPECT_EQ(asked, i);
  }
}

TEST(WriterQuestion, AYoungAnswerNeedsNoQuestion) {
  std::atomic<int> asked = 0;
  WriterQuestion question([&] { return ++asked > 0; }, kLong);
  question.ask(kOfAnHour);
  EXPECT_EQ(asked, 1);
  question.ask(kOfAnHour);
  EXPECT_EQ(asked, 1);
}

TEST(WriterQuestion, AfterAQuestionWithoutAnswerNoCallWaits) {
  std::atomic<int> asked = 0;
  std::promise<void> end;
  const auto ended = end.get_future().share();
  WriterQuestion question(
      [&] {
        if (++asked > 1) ended.wait();
        return false;
      },
      kLong);
  question.ask(kNew);
  // Each call would wait for an hour.
  for (int i = 0; i < 3; ++i) question.ask(kNew);
  end.set_value();
  question.stop();
  EXPECT_GE(asked, 1);
}

TEST(WriterQuestion, ASilentStoreDelaysACallByThePatience) {
  std::promise<void> end;
  const auto ended = end.get_future().share();
  WriterQuestion question(
      [&] {
        ended.wait();
        return true;
      },
      milliseconds(1));
  question.ask(kNew);
  end.set_value();
}

TEST(WriterQuestion, NoQuestionFollowsTheEnd) {
  std::atomic<int> asked = 0;
  WriterQuestion question([&] { return ++asked > 0; }, kLong);
  question.stop();
  question.ask(kNew);
  EXPECT_EQ(asked, 0);
}

}  // namespace
}  // namespace varve::remote
