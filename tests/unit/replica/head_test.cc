// SPDX-License-Identifier: Apache-2.0
#include "replica/head.h"

#include <gtest/gtest.h>

#include <string>

#include "support/temp_repository.h"
#include "support/test_keys.h"

namespace varve::replica {
namespace {

using test::code_of;
using test::must;

Head sample() {
  Head head;
  head.repository_id = std::string(32, 'a');
  head.number = 7;
  head.epoch = 3;
  head.holder = "0123456789abcdef";
  head.seconds = 1'700'000'000;
  head.previous = digest_of("before");
  head.commit = 99;
  head.superblock = "superblock\n";
  head.base_objects = 1;
  head.catalog = {{"a/cat/1", 10, digest_of("1")}, {"a/cat/2", 300, digest_of("2")}};
  return head;
}

TEST(Head, IsDecodedAsItWasEncoded) {
  EXPECT_EQ(must(decode_head(encode_head(sample(), nullptr))), sample());
}

TEST(Head, EveryChangedByteReturnsCorrupt) {
  const auto text = encode_head(sample(), nullptr);
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto changed = text;
    changed[i] = static_cast<char>(changed[i] ^ 0x20);
    EXPECT_EQ(code_of(decode_head(changed)), ErrorCode::kCorrupt) << i;
  }
}

TEST(Head, EveryShorterTextReturnsCorrupt) {
  const auto text = encode_head(sample(), nullptr);
  for (std::size_t bytes = 0; bytes < text.size(); ++bytes) {
    EXPECT_EQ(code_of(decode_head(text.substr(0, bytes))), ErrorCode::kCorrupt) << bytes;
  }
}

TEST(Head, OfAnEncryptedRepositoryNeedsItsKeys) {
  const auto keys = test::test_keys();
  const auto text = encode_head(sample(), keys.get());
  EXPECT_TRUE(authenticate_head(text, keys.get()));
  EXPECT_FALSE(authenticate_head(text, nullptr));
  EXPECT_FALSE(authenticate_head(encode_head(sample(), nullptr), keys.get()));
  EXPECT_TRUE(authenticate_head(encode_head(sample(), nullptr), nullptr));
}

}  // namespace
}  // namespace varve::replica
