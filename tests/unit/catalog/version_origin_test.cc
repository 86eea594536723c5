// SPDX-License-Identifier: Apache-2.0
#include "catalog/version_origin.h"

#include <gtest/gtest.h>

#include <string>

#include "varve/copy_name.h"

namespace varve::catalog {
namespace {

constexpr VersionNumber kCopied{7};

VersionOrigin sample() {
  return {
      "0123456789abcdef0123456789abcdef", SeriesId{3}, VersionNumber{9}, {-5, 999999999}, false};
}

TEST(VersionOriginAttribute, KeepsEachField) {
  const Xattrs root{{std::string(kOriginAttribute), encode_origin(kCopied, sample())}};
  EXPECT_EQ(origin_of(kCopied, root), sample());
  EXPECT_EQ(receiving_origin_of(kCopied, root), std::nullopt);
}

TEST(VersionOriginAttribute, CopyThatIsBeingReceivedHasNoOriginYet) {
  const Xattrs root{{std::string(kOriginAttribute), encode_receiving(kCopied, sample())}};
  EXPECT_EQ(origin_of(kCopied, root), std::nullopt);
  auto whole = sample();
  whole.whole = true;
  EXPECT_EQ(receiving_origin_of(kCopied, root), whole);
}

TEST(VersionOriginAttribute, NamesOfVersionsThatReceiveACopyAreKnown) {
  const std::string name = receiving_name(sample());
  EXPECT_TRUE(is_receiving_name(name));
  EXPECT_TRUE(is_receiving_name(name + ".partial"));
  for (const char* const other : {"copy-1", "copy-of-my-laptop-3.partial", "", "copy-"}) {
    EXPECT_FALSE(is_receiving_name(other)) << other;
  }
  EXPECT_FALSE(is_receiving_name(name + "x"));
}

TEST(VersionOriginAttribute, OfAnotherVersionMeansNothing) {
  const Xattrs root{{std::string(kOriginAttribute), encode_origin(kCopied, sample())}};
  EXPECT_EQ(origin_of(VersionNumber{8}, root), std::nullopt);
}

TEST(VersionOriginAttribute, EachTruncationMeansNothing) {
  const std::string whole = encode_origin(kCopied, sample());
  for (std::size_t n = 0; n < whole.size(); ++n) {
    const Xattrs root{{std::string(kOriginAttribute), whole.substr(0, n)}};
    EXPECT_EQ(origin_of(kCopied, root), std::nullopt) << n;
  }
  const Xattrs longer{{std::string(kOriginAttribute), whole + " 1"}};
  EXPECT_EQ(origin_of(kCopied, longer), std::nullopt);
}

TEST(CopyMarkAttribute, KeepsEachField) {
  const CopyMark mark{VersionNumber{4}, 123456789012};
  const Xattrs root{{std::string(kCopyMarkAttribute), encode_copy_mark(kCopied, mark)}};
  EXPECT_EQ(copy_mark_of(kCopied, root), mark);
  EXPECT_EQ(copy_mark_of(VersionNumber{8}, root), std::nullopt);
}

TEST(OwnAttributes, AreHiddenAndOthersStay) {
  Xattrs root{{"user.a", "1"},
              {std::string(kOriginAttribute), "x"},
              {std::string(kCopyMarkAttribute), "y"}};
  hide_own_attributes(root);
  EXPECT_EQ(root, (Xattrs{{"user.a", "1"}}));
}

}  // namespace
}  // namespace varve::catalog
