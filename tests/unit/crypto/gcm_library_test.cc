// SPDX-License-Identifier: Apache-2.0
// Texts under AES-256-GCM are the same with libIPSec_MB and with OpenSSL alone.
#include "crypto/gcm_library.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "crypto/aead.h"

namespace varve::crypto {
namespace {

using TextBytes = std::vector<std::byte>;

/// Makes keys of OpenSSL as long as it exists.
class OpenSslAlone {
 public:
  OpenSslAlone() { avoid_gcm_library(true); }
  OpenSslAlone(const OpenSslAlone&) = delete;
  OpenSslAlone& operator=(const OpenSslAlone&) = delete;
  ~OpenSslAlone() { avoid_gcm_library(false); }
};

Aead with_openssl(const SecretKey& key) {
  const OpenSslAlone alone;
  return {Cipher::kAes256Gcm, key};
}

TextBytes bytes_of_text(std::mt19937_64& random, std::size_t size) {
  TextBytes bytes(size);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

bool processor_has(const std::string& feature) {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("flags"))
      return (line + ' ').find(' ' + feature + ' ') != std::string::npos;
  }
  return false;
}

class GcmLibrary : public testing::Test {
 protected:
  void SetUp() override {
    if (GcmKey::expand(*SecretKey::random()) == nullptr) GTEST_SKIP() << "no libIPSec_MB";
  }
};

#if __has_include(<intel-ipsec-mb.h>)
TEST(GcmLibraryLoading, ALibraryThatIsInstalledIsUsed) {
  // The name that a linker knows, of whatever version the header is.
  void* const library = ::dlopen("libIPSec_MB.so", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) GTEST_SKIP() << "no libIPSec_MB";
  if (!processor_has("aes") || !processor_has("pclmulqdq")) GTEST_SKIP() << "no AES instructions";
  EXPECT_NE(GcmKey::expand(*SecretKey::random()), nullptr);
  const OpenSslAlone alone;
  EXPECT_EQ(GcmKey::expand(*SecretKey::random()), nullptr);
}
#endif

// Lengths on both sides of the library's steps of 16 to 768 bytes, and of 2^8 counters.
TEST_F(GcmLibrary, SealsAndOpensAsOpenSsl) {
  constexpr std::uint64_t kSeed = 5;
  std::mt19937_64 random(kSeed);
  const auto key = *SecretKey::random();
  const Aead fast(Cipher::kAes256Gcm, key);
  const Aead slow = with_openssl(key);
  std::vector<std::size_t> lengths;
  for (std::size_t length = 0; length <= 1100; ++length) lengths.push_back(length);
  for (const std::size_t length : {4095, 4096, 4097, 32768, 65537, 131072}) {
    lengths.push_back(length);
  }
  for (int i = 0; i < 200; ++i) lengths.push_back(random() % 20000);
  for (const std::size_t length : lengths) {
    Nonce nonce{};
    std::ranges::copy(bytes_of_text(random, nonce.size()), nonce.begin());
    const auto associated = bytes_of_text(random, random() % 4 == 0 ? 0 : random() % 150);
    const std::size_t shift = random() % 64;  // Texts begin at any address.
    const auto text = bytes_of_text(random, shift + length);
    auto sealed = text;
    auto expected = text;
    const auto of = [&](TextBytes& bytes) { return std::span(bytes).subspan(shift); };
    const auto tag = fast.seal(nonce, associated, of(sealed));
    ASSERT_TRUE(is_authentic(tag, slow.seal(nonce, associated, of(expected)))) << length;
    ASSERT_EQ(sealed, expected) << length;
    TextBytes out(length, std::byte{7});
    ASSERT_TRUE(fast.open(nonce, associated, of(sealed), tag, out)) << length;
    ASSERT_TRUE(std::ranges::equal(out, std::span(text).subspan(shift))) << length;
    ASSERT_TRUE(slow.open(nonce, associated, of(sealed), tag, out)) << length;
    auto in_place = sealed;
    ASSERT_TRUE(fast.open(nonce, associated, of(in_place), tag)) << length;
    ASSERT_EQ(in_place, text) << length;
  }
}

TEST_F(GcmLibrary, RefusesWhatOpenSslRefuses) {
  constexpr std::uint64_t kSeed = 6;
  std::mt19937_64 random(kSeed);
  const auto key = *SecretKey::random();
  const Aead fast(Cipher::kAes256Gcm, key);
  const Aead slow = with_openssl(key);
  for (int i = 0; i < 2000; ++i) {
    auto sealed = bytes_of_text(random, 1 + random() % 3000);
    auto associated = bytes_of_text(random, 1 + random() % 80);
    auto nonce = nonce_of(random());
    auto tag = slow.seal(nonce, associated, sealed);
    const auto change = [&](auto& bytes) {
      bytes[random() % bytes.size()] ^= static_cast<std::byte>(1U << random() % 8);
    };
    switch (random() % 4) {
      case 0:
        change(sealed);
        break;
      case 1:
        change(associated);
        break;
      case 2:
        change(nonce);
        break;
      default:
        change(tag);
    }
    TextBytes out(sealed.size(), std::byte{7});
    ASSERT_FALSE(fast.open(nonce, associated, sealed, tag, out)) << i;
    ASSERT_EQ(out, TextBytes(out.size())) << "bytes of a text that does not open";
    ASSERT_FALSE(slow.open(nonce, associated, sealed, tag, out)) << i;
    ASSERT_FALSE(fast.open(nonce, associated, sealed, tag)) << i;
    ASSERT_EQ(sealed, out) << "bytes of a text that does not open";
  }
}

TEST_F(GcmLibrary, FindsSealedZerosAsOpenSsl) {
  const auto key = *SecretKey::random();
  const Aead fast(Cipher::kAes256Gcm, key);
  const Aead slow = with_openssl(key);
  for (const std::size_t length : {0, 1, 16, 4095, 4096, 4097, 65536, 70001}) {
    TextBytes zeros(length);
    (void)slow.seal(nonce_of(length), {}, zeros);
    EXPECT_TRUE(fast.is_sealed_zeros(nonce_of(length), zeros)) << length;
    if (length == 0) continue;
    zeros.back() ^= std::byte{1};
    EXPECT_FALSE(fast.is_sealed_zeros(nonce_of(length), zeros)) << length;
    EXPECT_FALSE(slow.is_sealed_zeros(nonce_of(length), zeros)) << length;
  }
}

}  // namespace
}  // namespace varve::crypto
