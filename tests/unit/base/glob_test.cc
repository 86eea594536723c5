// SPDX-License-Identifier: Apache-2.0
#include "base/glob.h"

#include <gtest/gtest.h>

#include <string>

namespace varve::base {
namespace {

TEST(Glob, WildcardsMatchBytes) {
  const struct {
    const char* pattern;
    const char* name;
    bool matches;
  } cases[] = {
      {"", "", true},
      {"", "a", false},
      {"*", "", true},
      {"*.o", "a.o", true},
      {"*.o", "a.o.c", false},
      {"*a*b*c", "xaybzc", true},
      {"*a*b*c", "xaybz", false},
      {"?", "a", true},
      {"?", "", false},
      {"?", "ab", false},
      {"[a-c]x", "bx", true},
      {"[a-c]x", "dx", false},
      {"[!a-c]", "d", true},
      {"[^a-c]", "a", false},
      {"[]x]", "]", true},
      {"[a-]", "-", true},
      {"[\\]]", "]", true},
      {"\\*", "*", true},
      {"\\*", "a", false},
      {"a*", "a\xff\n", true},
      {"[\xf0-\xff]", "\xf7", true},
      {"[", "[", false},
      {"**", "abc", true},
      {"a**c", "abbc", true},
  };
  for (const auto& one : cases) {
    EXPECT_EQ(glob_matches(one.pattern, one.name), one.matches) << one.pattern << " " << one.name;
  }
}

TEST(Glob, ManyStarsTakeBoundedTime) {
  std::string pattern;
  for (int i = 0; i < 60; ++i) pattern += "*a";
  EXPECT_FALSE(glob_matches(pattern + "b", std::string(255, 'a')));
}

TEST(Glob, IncompletePatternsAreRefused) {
  for (const char* good : {"", "a", "*", "[a]", "[]]", "\\[", "a[!b-z]c", "[a][b]"}) {
    EXPECT_TRUE(check_glob(good)) << good;
  }
  for (const char* bad : {"[", "a[b", "[]", "[!]", "\\", "a\\", "[[:alpha:]]"}) {
    const auto checked = check_glob(bad);
    ASSERT_FALSE(checked) << bad;
    EXPECT_EQ(checked.error().code(), ErrorCode::kInvalid);
  }
}

}  // namespace
}  // namespace varve::base
