// SPDX-License-Identifier: Apache-2.0
// Expanded keys that are kept between texts: they change no byte, and end with their key.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/random_bytes.h"
#include "crypto/aead.h"
#include "crypto/gcm_library.h"
#include "crypto/hmac.h"

namespace varve::crypto {
namespace {

using Octets = std::vector<std::byte>;

Octets octets(std::uint64_t seed, std::size_t size) {
  std::mt19937_64 random(seed);
  Octets bytes(size);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}
SecretKey random_key(std::uint64_t seed) {
  const auto bytes = octets(seed, kKeyBytes);
  return *SecretKey::copy_of(std::span(bytes).first<kKeyBytes>());
}

struct SealedSample {
  Octets text;
  Tag tag{};
  bool operator==(const SealedSample& other) const {
    return text == other.text && is_authentic(tag, other.tag);
  }
};

/// A text with its place, by a seed.
struct Sample {
  explicit Sample(std::uint64_t seed)
      : nonce(nonce_of(seed)),
        associated(octets(seed, seed % 5 == 0 ? 0 : 1 + seed % 90)),
        text(octets(seed + 1, seed % 7 == 0 ? 0 : 1 + seed * 37 % 5000)) {}

  [[nodiscard]] SealedSample seal(const Aead& aead) const {
    SealedSample sealed{text, {}};
    sealed.tag = aead.seal(nonce, associated, sealed.text);
    return sealed;
  }
  [[nodiscard]] bool opens(const Aead& aead, const SealedSample& sealed) const {
    Octets out(sealed.text.size(), std::byte{9});
    return aead.open(nonce, associated, sealed.text, sealed.tag, out) && out == text;
  }

  Nonce nonce;
  Octets associated;
  Octets text;
};

/// The code that computes a cipher.
struct Code {
  Cipher cipher;
  bool openssl_alone;
};

class Contexts : public testing::TestWithParam<Code> {
 protected:
  void SetUp() override { avoid_gcm_library(GetParam().openssl_alone); }
  void TearDown() override { avoid_gcm_library(false); }
  static Cipher cipher() { return GetParam().cipher; }
};

INSTANTIATE_TEST_SUITE_P(Ciphers, Contexts,
                         testing::Values(Code{Cipher::kAes256Gcm, false},
                                         Code{Cipher::kAes256Gcm, true},
                                         Code{Cipher::kChaCha20Poly1305, false}),
                         [](const auto& of) {
                           if (of.param.cipher != Cipher::kAes256Gcm) return "chacha";
                           return of.param.openssl_alone ? "aes_openssl" : "aes";
                         });

TEST_P(Contexts, AKeyThatWasUsedInAnyWaySealsAsAFreshOne) {
  constexpr std::uint64_t kSeed = 31;
  std::mt19937_64 random(kSeed);
  const Aead used(cipher(), random_key(kSeed));
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const Sample sample(random() % 100000);
    const auto expected = sample.seal(Aead(cipher(), random_key(kSeed)));
    switch (random() % 4) {
      case 0: {  // A text that does not open leaves nothing behind.
        auto changed = expected;
        changed.tag.front() ^= std::byte{1};
        ASSERT_FALSE(sample.opens(used, changed)) << "seed " << kSeed << ", text " << i;
        break;
      }
      case 1:
        ASSERT_EQ(sample.seal(used), expected) << "seed " << kSeed << ", text " << i;
        break;
      case 2:
        ASSERT_TRUE(sample.opens(used, expected)) << "seed " << kSeed << ", text " << i;
        break;
      default: {
        auto in_place = expected;
        ASSERT_TRUE(used.open(sample.nonce, sample.associated, in_place.text, in_place.tag));
        ASSERT_EQ(in_place.text, sample.text) << "seed " << kSeed << ", text " << i;
      }
    }
  }
}

TEST_P(Contexts, ManyThreadsUseOneKeyAtATime) {
  const Aead shared(cipher(), random_key(1));
  const Hmac hmac(random_key(2));
  constexpr std::uint64_t kThreads = 8;
  constexpr std::uint64_t kTexts = 300;
  std::vector<SealedSample> expected;
  std::vector<Mac> macs;
  for (std::uint64_t i = 0; i < kThreads * kTexts; ++i) {
    const Sample sample(i);
    expected.push_back(sample.seal(Aead(cipher(), random_key(1))));
    macs.push_back(hmac_sha256(random_key(2), sample.text));
  }
  std::vector<std::size_t> wrong(kThreads);
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const Aead copy = shared;  // Shares the contexts.
      for (std::uint64_t i = t; i < kThreads * kTexts; i += kThreads) {
        const Sample sample(i);
        wrong[t] += static_cast<std::size_t>(sample.seal(copy) != expected[i]);
        wrong[t] += static_cast<std::size_t>(!sample.opens(copy, expected[i]));
        wrong[t] += static_cast<std::size_t>(!is_authentic(hmac.of({sample.text}), macs[i]));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<std::size_t>(kThreads));
}

TEST_P(Contexts, AChildOfAForkSealsAndOpens) {
  const Sample sample(12);
  const auto expected = sample.seal(Aead(cipher(), random_key(1)));
  auto aead = std::make_unique<const Aead>(cipher(), random_key(1));
  const Hmac hmac(random_key(2));
  const auto mac = hmac.of({sample.text});
  ASSERT_EQ(sample.seal(*aead), expected);
  const auto works = [&] {
    return sample.seal(*aead) == expected && sample.opens(*aead, expected) &&
           is_authentic(hmac.of({sample.text}), mac);
  };
  const pid_t child = ::fork();
  if (child == 0) {
    const bool good = works();
    aead.reset();
    ::_exit(good ? 0 : 1);
  }
  EXPECT_TRUE(works());
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(works()) << "the end of the child changed the parent's contexts";
}

TEST(RandomBytes, AForkRepeatsNone) {
  (void)*base::random_bytes<12>();  // A generator in this process would have a state to copy.
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto nonce = *base::random_bytes<12>();
    ::_exit(::write(ends[1], nonce.data(), nonce.size()) == ssize_t{kNonceBytes} ? 0 : 1);
  }
  Nonce theirs{};
  EXPECT_EQ(::read(ends[0], theirs.data(), theirs.size()), ssize_t{kNonceBytes});
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_NE(*base::random_bytes<12>(), theirs);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(Hmac, PartsAreOneText) {
  const Hmac hmac(random_key(3));
  const auto text = octets(4, 300);
  const auto whole = hmac.of({text});
  EXPECT_TRUE(is_authentic(whole, hmac_sha256(random_key(3), text)));
  for (const std::size_t cut : {0, 1, 63, 64, 65, 299, 300}) {
    const std::span<const std::byte> bytes(text);
    EXPECT_TRUE(is_authentic(hmac.of({bytes.first(cut), bytes.subspan(cut)}), whole)) << cut;
  }
  EXPECT_FALSE(is_authentic(hmac.of({}), whole));
}

/// Counts the places of a process's writable memory that have these bytes.
std::size_t copies_in_memory(pid_t process, std::string_view bytes) {
  constexpr std::uint64_t kMappingMax = std::uint64_t{64} << 20;  // Not a sanitizer's shadow.
  const auto folder = "/proc/" + std::to_string(process);
  std::ifstream maps(folder + "/maps");
  std::ifstream memory(folder + "/mem", std::ios::binary);
  std::size_t found = 0;
  std::string content;
  for (std::string line; std::getline(maps, line);) {
    unsigned long long begin = 0;
    unsigned long long end = 0;
    char access[5] = {};
    if (std::sscanf(line.c_str(), "%llx-%llx %4s", &begin, &end, access) != 3) continue;
    if (access[0] != 'r' || access[1] != 'w' || end - begin > kMappingMax) continue;
    content.assign(end - begin, '\0');
    memory.clear();
    memory.seekg(static_cast<std::streamoff>(begin));
    memory.read(content.data(), static_cast<std::streamsize>(content.size()));
    for (std::size_t at = 0; (at = content.find(bytes, at)) != std::string::npos; ++at) ++found;
  }
  return found;
}

/// Sends to the other process, and waits for its answer.
void meet(int out, int in, std::string_view message = ".") {
  char answer = 0;
  if (::write(out, message.data(), message.size()) < 0 || ::read(in, &answer, 1) != 1) ::_exit(2);
}

TEST_P(Contexts, TheLastCopyOfAKeyLeavesNothingInMemory) {
  // A process of its own has the key, and tells its inverse, so that no copy is this test's.
  int to_child[2];
  int to_test[2];
  ASSERT_EQ(::pipe(to_child), 0);
  ASSERT_EQ(::pipe(to_test), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    std::string inverted(kKeyBytes, '\0');
    auto aead = [&] {
      const auto key = *SecretKey::random();
      std::ranges::transform(key.bytes(), inverted.begin(),
                             [](std::byte byte) { return static_cast<char>(~byte); });
      return std::make_unique<const Aead>(cipher(), key);
    }();
    auto copy = std::make_unique<const Aead>(*aead);
    const Sample sample(12);
    (void)sample.seal(*aead);
    meet(to_test[1], to_child[0], inverted);
    aead.reset();
    (void)sample.seal(*copy);
    meet(to_test[1], to_child[0]);
    copy.reset();
    meet(to_test[1], to_child[0]);
    ::_exit(0);
  }
  std::string key(kKeyBytes, '\0');
  ASSERT_EQ(::read(to_test[0], key.data(), key.size()), ssize_t{kKeyBytes});
  for (auto& byte : key) byte = static_cast<char>(~byte);
  const auto step = [&] {
    char answer = 0;
    EXPECT_EQ(::write(to_child[1], ".", 1), 1);
    EXPECT_EQ(::read(to_test[0], &answer, 1), 1);
  };
  const auto kept = copies_in_memory(child, key);
  EXPECT_GE(kept, 2U) << "the key and its expansion should be found";
  step();
  EXPECT_EQ(copies_in_memory(child, key), kept) << "the other copy needs them";
  step();
  EXPECT_EQ(copies_in_memory(child, key), 0U);
  EXPECT_EQ(::write(to_child[1], ".", 1), 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  for (const int end : {to_child[0], to_child[1], to_test[0], to_test[1]}) ::close(end);
}

}  // namespace
}  // namespace varve::crypto
