// SPDX-License-Identifier: Apache-2.0
#include "crypto/secure_memory.h"

#include <gtest/gtest.h>
#include <openssl/crypto.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "crypto/aead.h"
#include "crypto/hmac.h"
#include "crypto/secret_key.h"

namespace varve::crypto {
namespace {

constexpr std::uint32_t kKeys = 100'000;
constexpr rlim_t kLockedBytesMax = 64 << 10;

SecretKey numbered_key(std::uint32_t number) {
  std::array<std::byte, kKeyBytes> bytes{};
  std::memcpy(bytes.data(), &number, sizeof number);
  return *SecretKey::copy_of(bytes);
}

bool all_zero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
}

/// Returns the KiB that this process has locked.
int locked_kib() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    int kib = -1;
    if (word == "VmLck:" && status >> kib) return kib;
  }
  return -1;
}

/// Runs `body` in a child whose user may lock kLockedBytesMax. Returns the output to stderr. Fails
/// unless `body` returns true.
template <typename Body>
std::string in_limited_child(const Body& body) {
  int pipe[2];
  EXPECT_EQ(::pipe(pipe), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(pipe[1], STDERR_FILENO);
    const rlimit limit{kLockedBytesMax, kLockedBytesMax};
    const bool limited = ::setrlimit(RLIMIT_MEMLOCK, &limit) == 0;
    // The limit does not hold for root.
    const bool is_user = ::getuid() != 0 || ::setuid(65534) == 0;
    ::_exit(limited && is_user && body() ? 0 : 1);
  }
  ::close(pipe[1]);
  std::string output;
  char piece[512];
  for (ssize_t got = 0; (got = ::read(pipe[0], piece, sizeof piece)) > 0;) {
    output.append(piece, static_cast<std::size_t>(got));
  }
  ::close(pipe[0]);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  return output;
}

TEST(SecureMemory, HasRoomForMoreKeysThanTheSystemLocks) {
  const auto output = in_limited_child([] {
    std::vector<SecretKey> keys;
    for (std::uint32_t i = 0; i < kKeys; ++i) keys.push_back(numbered_key(i));
    for (std::uint32_t i = 0; i < kKeys; ++i) {
      if (!keys[i].equals(numbered_key(i))) return false;
    }
    return true;
  });
  const std::string warning = "raise 'ulimit -l'";
  const auto at = output.find(warning);
  ASSERT_NE(at, std::string::npos) << output;
  EXPECT_EQ(output.find(warning, at + 1), std::string::npos) << output;
}

TEST(SecureMemory, UsesUpTheLimitOfAChildOfAFork) {
  const auto inherited = numbered_key(1);
  (void)in_limited_child([] {
    const auto keys = numbered_key(2);
    const int kib = locked_kib();
    return kib > 0 && kib * 1024 <= static_cast<int>(kLockedBytesMax);
  });
}

TEST(SecureMemory, BlocksOfAnySizeAreZerosAndApart) {
  std::vector<std::pair<std::shared_ptr<std::byte>, std::size_t>> blocks;
  for (std::size_t bytes = 1; bytes <= kSecureBytesMax; bytes += bytes < 40 ? 1 : 509) {
    auto block = *allocate_secure(bytes);
    EXPECT_TRUE(all_zero({block.get(), bytes})) << bytes;
    std::memset(block.get(), static_cast<int>(bytes % 251 + 1), bytes);
    blocks.emplace_back(std::move(block), bytes);
  }
  blocks.emplace_back(*allocate_secure(kSecureBytesMax), 0);
  for (const auto& [block, bytes] : blocks) {
    const auto wanted = static_cast<std::byte>(bytes % 251 + 1);
    const std::span<const std::byte> found(block.get(), bytes);
    EXPECT_TRUE(std::ranges::all_of(found, [&](std::byte b) { return b == wanted; })) << bytes;
  }
}

TEST(SecureMemory, WipesAFreedBlockAndUsesItsSpaceAgain) {
  for (const std::size_t bytes : {kKeyBytes, std::size_t{100}, kSecureBytesMax}) {
    auto block = *allocate_secure(bytes);
    auto* const address = block.get();
    std::memset(address, 0x5a, bytes);
    block.reset();
    // The heap keeps the address of another free block in the first bytes.
    EXPECT_TRUE(all_zero(std::span(address, bytes).subspan(sizeof(void*)))) << bytes;
    const auto again = *allocate_secure(bytes);
    EXPECT_EQ(again.get(), address) << bytes;
    EXPECT_TRUE(all_zero({again.get(), bytes})) << bytes;
  }
}

TEST(SecureMemory, OpenSslHasNothingInTheHeap) {
  const auto key = *SecretKey::random();
  (void)Hmac(key).of({key.bytes()});
  (void)*derive_key(key, {}, "info");
  EXPECT_EQ(CRYPTO_secure_malloc_initialized(), 0);
}

}  // namespace
}  // namespace varve::crypto
