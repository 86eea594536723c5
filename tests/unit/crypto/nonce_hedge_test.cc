// SPDX-License-Identifier: Apache-2.0
// Random bytes that repeat: different texts still have different nonces and keys.
#include "crypto/nonce_hedge.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/coding.h"
#include "base/random_bytes.h"
#include "crypto/key_slots.h"
#include "crypto/sealed_file.h"
#include "io/memory_file_system.h"
#include "support/repeated_random.h"
#include "support/sealed_pairs.h"
#include "support/temp_repository.h"
#include "support/test_keys.h"

namespace varve::crypto {
namespace {

using test::must;

NonceHedge some_hedge(int number = 1) {
  std::array<std::byte, kKeyBytes> bytes{};
  bytes.front() = static_cast<std::byte>(number);
  return must(NonceHedge::make(must(SecretKey::copy_of(bytes)), "00", Cipher::kAes256Gcm));
}

TEST(NonceHedge, OneSeedGivesEachPlaceAndTextItsOwnNonce) {
  const auto hedge = some_hedge();
  const NonceSeed seed{};
  std::set<Nonce> nonces;
  // The last two have the same bytes, cut at other places.
  for (const auto& [place, text] : std::vector<std::pair<std::string_view, std::string_view>>{
           {"", ""}, {"a", ""}, {"", "a"}, {"a", "b"}, {"ab", ""}, {"", "ab"}}) {
    const auto nonce = hedge.nonce(seed, base::as_bytes(place), base::as_bytes(text));
    EXPECT_TRUE(nonces.insert(nonce).second) << place << "|" << text;
    EXPECT_EQ(nonce, hedge.nonce(seed, base::as_bytes(place), base::as_bytes(text)));
    EXPECT_TRUE(
        nonces.insert(some_hedge(2).nonce(seed, base::as_bytes(place), base::as_bytes(text)))
            .second);
  }
  EXPECT_TRUE(nonces.insert(hedge.nonce(NonceSeed{std::byte{1}}, {}, {})).second);
}

TEST(NonceHedge, RepeatedRandomBytesGiveEachContentItsOwnSalt) {
  const auto hedge = some_hedge();
  const test::RepeatedRandom repeated;
  const auto salt = [&](std::string_view place, std::string_view content) {
    return must(hedge.new_salt(base::as_bytes(place), base::as_bytes(content)));
  };
  EXPECT_EQ(salt("a", "b"), salt("a", "b"));
  EXPECT_NE(salt("a", "b"), salt("a", "c"));
  EXPECT_NE(salt("a", "b"), salt("b", "b"));
  EXPECT_NE(salt("a", "b"), salt("ab", ""));
  EXPECT_GE(test::random_source.requests, 8U);
}

TEST(RandomBytes, FillsAllBytesAndRepeatsNone) {
  std::set<std::array<std::byte, 16>> seen;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(seen.insert(must(base::random_bytes<16>())).second);
  std::vector<std::byte> many(std::size_t{1} << 20);
  must(base::fill_random(many));
  for (std::size_t at = 0; at < many.size(); at += 64) {
    const auto part = std::span(many).subspan(at, 64);
    ASSERT_TRUE(std::ranges::any_of(part, [](std::byte b) { return b != std::byte{}; })) << at;
  }
}

TEST(KeySlots, RepeatedRandomBytesGiveAnotherCostAnotherSalt) {
  const auto master = must(SecretKey::random());
  const test::RepeatedRandom repeated;
  NewKey key{.key = {.kind = KeyKind::kPassphrase,
                     .secret = must(Secret::copy_of(base::as_bytes("pass")))},
             .cost = {64, 1, 1}};
  const auto one = must(seal_slot(key, 1, 0, master, "00"));
  key.cost.passes = 2;
  const auto other = must(seal_slot(key, 1, 0, master, "00"));
  EXPECT_NE(one.salt, other.salt);
}

/// A sealed file in memory, with two blocks.
struct SealedSnapshot {
  SealedSnapshot() {
    file = make_sealed_file(must(disk->open("f", io::OpenMode::kReadWrite)), "f", keys,
                            {.kind = 1, .store = 2, .number = 3, .block_bytes = 512});
    put(0, std::string(1024, 'x'));
  }
  void put(std::uint64_t at, std::string_view text) const {
    must(file->write_at(at, base::as_bytes(text)));
  }
  /// Writes what one future writes: whole blocks, a part of a block, an append and a cut.
  void go_on(char with) const {
    put(0, std::string(1024, with));
    put(100, std::string(7, static_cast<char>(with + 1)));
    put(1024, std::string(300, with));
    must(file->truncate(900));
  }

  const std::shared_ptr<const KeyRing> keys = test::test_keys();
  const std::unique_ptr<io::FileSystem> disk = io::make_memory_file_system();
  std::unique_ptr<io::File> file;
};

TEST(SealedFileFutures, RandomBytesThatRepeatSealNoTwoTextsAlike) {
  const test::SealedPairs pairs;
  const test::RepeatedRandom repeated;
  const SealedSnapshot snapshot;
  snapshot.go_on('a');
  snapshot.go_on('b');
  EXPECT_GE(pairs.counts().texts, 12U);
  EXPECT_EQ(pairs.counts().repeated, 0U);
}

// The child and the parent are two futures of one process, as of a snapshot of a virtual machine:
// all that the process has in its memory is the same.
TEST(SealedFileFutures, ForkWithAGeneratorThatIsSetBackSealsNoTwoTextsAlike) {
  const test::SealedPairs pairs;
  const SealedSnapshot snapshot;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  constexpr std::uint64_t kSeed = 5;
  const pid_t child = ::fork();
  if (child == 0) {
    const test::SealedPairs own;
    const test::RepeatedRandom repeated(kSeed);
    snapshot.go_on('a');
    const auto texts = own.texts();
    const auto bytes = std::as_bytes(std::span(texts));
    ::_exit(::write(ends[1], bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()) ? 0
                                                                                               : 1);
  }
  ::close(ends[1]);
  {
    const test::RepeatedRandom repeated(kSeed);
    snapshot.go_on('b');
  }
  std::size_t theirs = 0;
  for (test::SealedPairs::Text text;
       ::read(ends[0], &text, sizeof text) == static_cast<ssize_t>(sizeof text); ++theirs) {
    test::SealedPairs::add(text);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_GE(theirs, 5U);
  EXPECT_EQ(pairs.counts().repeated, 0U);
  ::close(ends[0]);
}

}  // namespace
}  // namespace varve::crypto
