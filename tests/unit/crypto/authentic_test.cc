// SPDX-License-Identifier: Apache-2.0
#include "crypto/authentic.h"

#include <gtest/gtest.h>

#include <array>
#include <concepts>
#include <optional>
#include <string_view>
#include <vector>

#include "base/coding.h"
#include "crypto/hmac.h"

namespace varve::crypto {
namespace {

bool is_equal(std::string_view given, std::string_view expected) {
  return is_authentic(base::as_bytes(given), base::as_bytes(expected));
}

TEST(IsAuthentic, OnlyAllBytesOfTheExpectedValueAre) {
  EXPECT_TRUE(is_equal("abc", "abc"));
  EXPECT_FALSE(is_equal("abd", "abc"));
  EXPECT_FALSE(is_equal("xbc", "abc"));
  EXPECT_FALSE(is_equal("ab", "abc"));
  EXPECT_FALSE(is_equal("abcabc", "abc"));
  EXPECT_FALSE(is_equal("", "abc"));
}

TEST(IsAuthentic, NothingEqualsAnEmptyValue) {
  EXPECT_FALSE(is_equal("", ""));
  EXPECT_FALSE(is_equal("a", ""));
}

TEST(IsAuthentic, NothingEqualsAFailedComputation) {
  const Mac zeros{};
  EXPECT_TRUE(is_authentic(zeros, zeros));
  EXPECT_TRUE(is_authentic(zeros, Result<Mac>(zeros)));
  EXPECT_FALSE(is_authentic(zeros, Result<Mac>(Error(ErrorCode::kIo, "no memory"))));
  EXPECT_FALSE(is_authentic({}, Result<Mac>(Error(ErrorCode::kIo, "no memory"))));
  EXPECT_TRUE(is_authentic(zeros, std::optional<Mac>(zeros)));
  EXPECT_FALSE(is_authentic(zeros, std::optional<Mac>()));
  EXPECT_FALSE(is_authentic({}, std::optional<Mac>()));
}

TEST(AuthenticationCode, HasNoOtherComparison) {
  static_assert(!std::equality_comparable<Mac>);
  static_assert(!std::equality_comparable<AuthenticationCode<16>>);
}

}  // namespace
}  // namespace varve::crypto
