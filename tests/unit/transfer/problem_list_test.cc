// SPDX-License-Identifier: Apache-2.0
#include "transfer/problem_list.h"

#include <gtest/gtest.h>

#include <string>

namespace varve::transfer {
namespace {

TEST(ProblemList, SharedProblemIsOneMessageWithCountAndFirstName) {
  ProblemList list;
  list.add_shared("owner not set", "a");
  list.add_shared("owner not set", "b");
  list.add("c", "unreadable");
  EXPECT_EQ(list.take(),
            (std::vector<std::string>{"c: unreadable", "owner not set (2 files, the first is a)"}));
}

TEST(ProblemList, SharedProblemOfOneFileReadsAsItsOwn) {
  ProblemList list;
  list.add_shared("owner not set", "a");
  EXPECT_EQ(list.take(), std::vector<std::string>{"a: owner not set"});
}

TEST(ProblemList, OverTheLimitIsCounted) {
  ProblemList list;
  for (std::size_t i = 0; i < ProblemList::kMessagesMax + 5; ++i) list.add("f", "unreadable");
  const auto messages = list.take();
  EXPECT_EQ(messages.size(), ProblemList::kMessagesMax + 1);
  EXPECT_EQ(messages.back(), "and 5 more problems");
}

}  // namespace
}  // namespace varve::transfer
