// SPDX-License-Identifier: Apache-2.0
#include "remote/head.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/temp_repository.h"
#include "support/test_keys.h"

namespace varve::remote {
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

// No name of a head has such a number, and none follows the last one.
TEST(Head, NumberWithoutANameReturnsCorrupt) {
  for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{10'000'000'000}, UINT64_MAX}) {
    auto head = sample();
    head.number = number;
    EXPECT_EQ(code_of(decode_head(encode_head(head, nullptr))), ErrorCode::kCorrupt) << number;
  }
  auto head = sample();
  head.number = 9'999'999'999;
  EXPECT_EQ(must(decode_head(encode_head(head, nullptr))), head);
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

/// Ends the growth of this process's address space, but leaves free blocks in the ordinary heap.
void stop_growth() {
  std::vector<std::string> blocks(4000, std::string(1000, ' '));
  static const auto pin = std::make_unique<char[]>(1000);  // Keeps the blocks from being returned.
  std::ifstream statm("/proc/self/statm");
  std::uint64_t pages = 0;
  statm >> pages;
  const rlim_t bytes = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const struct rlimit limit = {bytes, bytes};
  EXPECT_EQ(::setrlimit(RLIMIT_AS, &limit), 0);
}

TEST(Head, WithZerosIsRefusedWithoutMemoryForKeys) {
  const auto keys = test::test_keys();
  const auto sound = encode_head(sample(), keys.get());
  const auto zeros = encode_head(sample(), nullptr);
  const auto is_right = [&] {
    constexpr std::size_t kMost = 200'000;
    std::vector<crypto::SecretKey> all;
    all.reserve(kMost);
    stop_growth();
    while (all.size() < kMost) {
      auto key = crypto::SecretKey::random();
      if (!key) break;
      all.push_back(*std::move(key));
    }
    return all.size() < kMost && !authenticate_head(zeros, keys.get()) &&
           authenticate_head(sound, keys.get()) && encode_head(sample(), keys.get()) == sound;
  };
  EXPECT_EXIT(std::_Exit(is_right() ? 0 : 1), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace varve::remote
