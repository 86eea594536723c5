// SPDX-License-Identifier: Apache-2.0
// No two texts that Varve seals may have the same key and nonce: over a whole history of an
// encrypted repository and its copy, with crashes that take back what was not synced, and with
// random bytes that repeat.
//
// VARVE_TEST_STEPS=N sets the length of the history, VARVE_TEST_SEED=N chooses another one.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "random_history.h"
#include "support/repeated_random.h"
#include "support/sealed_pairs.h"

namespace varve::test {
namespace {

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::stoull(text);
}

// Runs a history, and checks the keys and nonces of its texts.
void check_history(bool repeats) {
  const auto seed = number_from("VARVE_TEST_SEED", 1);
  const auto steps = number_from("VARVE_TEST_STEPS", 500);
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  const SealedPairs pairs;
  RandomHistory history(seed);
  std::optional<RepeatedRandom> repeated;
  if (repeats) repeated.emplace();  // The two repositories have ids of their own.
  history.run(steps);
  std::printf("%s\n", history.counts().c_str());
  for (const char* kind : {"write", "write out of order", "seal", "clone", "arrange", "crash"}) {
    EXPECT_GT(history.count(kind), 0U) << kind;
  }

  const auto counts = pairs.counts();
  std::printf("%llu texts under %llu keys; at most %llu random and %llu counted nonces a key\n",
              static_cast<unsigned long long>(counts.texts),
              static_cast<unsigned long long>(counts.keys),
              static_cast<unsigned long long>(counts.random_per_key),
              static_cast<unsigned long long>(counts.counted_per_key));
  EXPECT_GT(counts.texts, 5 * steps);
  EXPECT_GT(counts.keys, steps / 4);
  EXPECT_EQ(counts.repeated, 0U) << "a key and nonce sealed two texts, with the seed " << seed;
  std::printf("%llu texts were sealed again as before\n",
              static_cast<unsigned long long>(counts.equal));
  EXPECT_EQ(counts.mixed_keys, 0U);
  // docs/ENCRYPTION.md, "Nonces". A step seals far less than 10,000 values.
  constexpr std::uint64_t kRandomMax = std::uint64_t{1} << 32;
  EXPECT_LT(counts.random_per_key, std::min(kRandomMax, 10'000 * steps));
}

TEST(RandomHistory, NoKeyAndNonceSealTwoTexts) { check_history(false); }

// The generator is set back before each request, as by going back to snapshots of the machine.
TEST(RandomHistory, NoKeyAndNonceSealTwoTextsIfRandomBytesRepeat) {
  const auto requests = random_source.requests.load();
  check_history(true);
  EXPECT_GT(random_source.requests, requests);
}

/// Stores a version of a repository, whose contents depend on the seed, and leaves another one
/// open with staged and stored contents.
void store_in_future(const std::string& path, std::uint64_t seed) {
  const auto repository = reopen(path, with_key(quiet_options()));
  const auto series = must(repository->find_series("s")).id;
  for (const bool sealed : {true, false}) {
    const auto name = sealed ? "sealed" : "open";
    const auto number = must(repository->open_version(series, name, folder())).number;
    const auto version = must(repository->writer(series));
    Ino last = 0;
    for (std::uint64_t i = 0; i < 20; ++i) {
      last = write_file(*version, kRootIno, "file-" + std::to_string(i), noise(9000, seed + i));
    }
    must(must(version->open(last, true))->write(2000, base::as_bytes(noise(5000, seed))));
    if (sealed) must(repository->seal(series, number, ""));
  }
}

// The repository and the state of the generator go back to a snapshot, and two futures differ.
TEST(RandomHistory, FuturesOfOneSnapshotShareNoKeyAndNonce) {
  const SealedPairs pairs;
  const TempDirectory directory;
  const auto path = directory.path() + "/r";
  CreateOptions options = encrypted();
  options.encryption->cipher = "aes-256-gcm";
  must(Repository::create(path, small_chunks(Codec::kZstd), options));
  {
    const auto repository = reopen(path, with_key(quiet_options()));
    must(repository->create_series("s"));
  }
  const auto before = pairs.counts().texts;
  for (const std::uint64_t future : {1, 1001}) {
    const auto copy = directory.path() + "/" + std::to_string(future);
    std::filesystem::copy(path, copy, std::filesystem::copy_options::recursive);
    const RepeatedRandom repeated(9);
    store_in_future(copy, future);
  }
  EXPECT_GT(pairs.counts().texts, before + 100);
  EXPECT_EQ(pairs.counts().repeated, 0U);
}

// Proves that the tests above can fail.
TEST(SealedPairs, CountsATextThatRepeatsAKeyAndNonce) {
  const SealedPairs pairs;
  crypto::SealedText text;
  int number = 0;
  const auto see = [&](int key, std::uint64_t nonce) {
    text.key.fill(static_cast<std::byte>(key));
    text.nonce = crypto::nonce_of(nonce);
    std::array<std::byte, 1> content{static_cast<std::byte>(++number)};
    text.text = content;
    SealedPairs::see(text);
  };
  see(1, 0);
  see(1, 1);
  see(2, 0);
  EXPECT_EQ(pairs.counts().repeated, 0U);
  EXPECT_EQ(pairs.counts().keys, 2U);
  see(1, 1);  // As by a counter that a crash took back.
  EXPECT_EQ(pairs.counts().repeated, 1U);
  EXPECT_EQ(pairs.counts().mixed_keys, 0U);
  see(2, std::uint64_t{1} << 40);
  EXPECT_EQ(pairs.counts().mixed_keys, 1U);
  EXPECT_EQ(pairs.counts().random_per_key, 1U);
  number = 0;
  see(1, 0);  // The first text again.
  EXPECT_EQ(pairs.counts().repeated, 1U);
  EXPECT_EQ(pairs.counts().equal, 1U);
}

}  // namespace
}  // namespace varve::test
