// SPDX-License-Identifier: Apache-2.0
// Encryption sets up few keys, hashes names once, takes random bytes in batches, and stores hardly
// more bytes. This program replaces functions of OpenSSL by ones that count.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "support/temp_repository.h"
#include "varve/browse.h"

namespace {

struct Counts {
  std::atomic<std::uint64_t> sealed, opened, keys, randoms, names;
};
Counts counts;

}  // namespace

int EVP_EncryptInit_ex2(EVP_CIPHER_CTX* context, const EVP_CIPHER* cipher, const unsigned char* key,
                        const unsigned char* nonce, const OSSL_PARAM* parameters) {
  if (key != nullptr) ++counts.keys;
  if (nonce != nullptr) ++counts.sealed;
  return EVP_CipherInit_ex2(context, cipher, key, nonce, 1, parameters);
}
int EVP_DecryptInit_ex2(EVP_CIPHER_CTX* context, const EVP_CIPHER* cipher, const unsigned char* key,
                        const unsigned char* nonce, const OSSL_PARAM* parameters) {
  if (key != nullptr) ++counts.keys;
  if (nonce != nullptr) ++counts.opened;
  return EVP_CipherInit_ex2(context, cipher, key, nonce, 0, parameters);
}
int EVP_MAC_final(EVP_MAC_CTX* context, unsigned char* out, std::size_t* length,
                  std::size_t bytes) {
  static auto* const next =
      reinterpret_cast<decltype(&EVP_MAC_final)>(::dlsym(RTLD_NEXT, "EVP_MAC_final"));
  ++counts.names;
  return next(context, out, length, bytes);
}
int RAND_bytes(unsigned char* out, int bytes) {
  ++counts.randoms;
  return RAND_bytes_ex(nullptr, out, static_cast<std::size_t>(bytes), 0);
}

namespace varve {
namespace {

using test::must;

constexpr int kFiles = 2000;

/// Stores small files as a version, and seals it.
void store_small_files(Repository& repository) {
  const auto series = must(repository.create_series("s")).id;
  const auto number = must(repository.open_version(series, "v", test::folder())).number;
  const auto version = must(repository.writer(series));
  for (int i = 0; i < kFiles; ++i) {
    test::write_file(*version, kRootIno, "file-" + std::to_string(i),
                     test::noise(3000, static_cast<std::uint64_t>(i)));
  }
  must(repository.seal(series, number, ""));
}

TEST(EncryptionGate, KeysAreSetUpForFewTexts) {
  const test::TempDirectory directory;
  const std::string path = directory.path() + "/r";
  must(Repository::create(path, test::small_chunks(Codec::kZstd), test::encrypted()));
  {
    const auto repository = test::reopen(path, test::with_key(test::quiet_options()));
    store_small_files(*repository);
  }
  // Each file has a name, an inode, a name in the tree and a part of a frame.
  EXPECT_GE(counts.sealed, std::uint64_t{2 * kFiles}) << "the counters do not count";
  EXPECT_GE(counts.opened, std::uint64_t{2 * kFiles}) << "the counters do not count";
  RecordProperty("sealed", std::to_string(counts.sealed));
  RecordProperty("opened", std::to_string(counts.opened));
  RecordProperty("keys", std::to_string(counts.keys));
  RecordProperty("randoms", std::to_string(counts.randoms));
  RecordProperty("names", std::to_string(counts.names));
  EXPECT_LE(counts.keys * 40, counts.sealed + counts.opened);
  // A name is hashed when it is recorded. A directory that is not recorded yet has no names to look
  // up.
  EXPECT_GE(counts.names, std::uint64_t{kFiles}) << "the counters do not count";
  EXPECT_LE(counts.names, std::uint64_t{kFiles + kFiles / 10});
  EXPECT_LE(counts.randoms * 20, counts.sealed);
}

TEST(EncryptionGate, AnEncryptedRepositoryIsOnePercentLonger) {
  const auto stats_of = [](bool encrypted, bool small) {
    const test::TempDirectory directory;
    const std::string path = directory.path() + "/r";
    RepositoryParameters parameters;
    parameters.codec = Codec::kNone;
    must(Repository::create(path, parameters, encrypted ? test::encrypted() : CreateOptions{}));
    const auto repository = test::reopen(
        path, encrypted ? test::with_key(test::quiet_options()) : test::quiet_options());
    if (small) {
      store_small_files(*repository);
    } else {
      const auto series = must(repository->create_series("s")).id;
      const auto number = must(repository->open_version(series, "v", test::folder())).number;
      const auto version = must(repository->writer(series));
      test::write_file(*version, kRootIno, "image", test::noise(std::size_t{32} << 20, 1));
      must(repository->seal(series, number, ""));
    }
    return must(repository->stats());
  };
  for (const bool small : {true, false}) {
    const auto plain = stats_of(false, small);
    const auto sealed = stats_of(true, small);
    // Without the headers and the padding of containers.
    const auto net = [](const RepositoryStats& stats) {
      return static_cast<double>(stats.repository_bytes - stats.reserve_bytes -
                                 stats.container_bytes + stats.frame_bytes);
    };
    EXPECT_EQ(sealed.frame_bytes, plain.frame_bytes);
    EXPECT_LE(net(sealed), 1.01 * net(plain)) << (small ? "small files" : "an image");
    // Padmé adds at most 1/32 to a container, and half of that on average.
    EXPECT_LE(static_cast<double>(sealed.container_bytes),
              1.02 * static_cast<double>(plain.container_bytes));
  }
}

}  // namespace
}  // namespace varve
