// SPDX-License-Identifier: Apache-2.0
// Encryption sets up few keys, hashes names once, takes random bytes in batches, stores hardly more
// bytes, makes hardly more requests, and decrypts little more than a reader wants. This program
// replaces functions of OpenSSL by ones that count, and keeps all keys there.
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <openssl/evp.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <fstream>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "crypto/gcm_library.h"
#include "meta/schema.h"
#include "meta/stored_records.h"
#include "support/records_read.h"
#include "support/temp_repository.h"
#include "varve/browse.h"
#include "varve/check.h"

namespace {

struct Counts {
  std::atomic<std::uint64_t> sealed, opened, opened_bytes, direct_bytes, keys, randoms, codes;
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
int EVP_DecryptUpdate(EVP_CIPHER_CTX* context, unsigned char* out, int* length,
                      const unsigned char* in, int bytes) {
  static auto* const next =
      reinterpret_cast<decltype(&EVP_DecryptUpdate)>(::dlsym(RTLD_NEXT, "EVP_DecryptUpdate"));
  if (out != nullptr) counts.opened_bytes += static_cast<std::uint64_t>(bytes);
  return next(context, out, length, in, bytes);
}
extern "C" ssize_t pread(int fd, void* out, size_t bytes, off_t offset) {
  const auto flags = ::fcntl(fd, F_GETFL);
  if (flags >= 0 && (flags & O_DIRECT) != 0) counts.direct_bytes += bytes;
  return ::syscall(SYS_pread64, fd, out, bytes, offset);
}
int EVP_MAC_final(EVP_MAC_CTX* context, unsigned char* out, std::size_t* length,
                  std::size_t bytes) {
  static auto* const next =
      reinterpret_cast<decltype(&EVP_MAC_final)>(::dlsym(RTLD_NEXT, "EVP_MAC_final"));
  ++counts.codes;
  return next(context, out, length, bytes);
}
extern "C" ssize_t getrandom(void* out, std::size_t bytes, unsigned flags) {
  ++counts.randoms;
  return ::syscall(SYS_getrandom, out, bytes, flags);
}

namespace varve {
namespace {

using test::must;

/// Keeps keys in OpenSSL, whose calls this program counts.
class EncryptionGate : public testing::Test {
 protected:
  void SetUp() override { crypto::avoid_gcm_library(true); }
  void TearDown() override { crypto::avoid_gcm_library(false); }
};

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

TEST_F(EncryptionGate, KeysAreSetUpForFewTexts) {
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
  RecordProperty("codes", std::to_string(counts.codes));
  EXPECT_LE(counts.keys * 40, counts.sealed + counts.opened);
  // A name is hashed when it is recorded. A directory that is not recorded yet has no names to look
  // up. The other codes are those of nonces and salts; each nonce
  // needs a digest, which counts as a sealed text.
  EXPECT_GE(counts.codes, std::uint64_t{3 * kFiles}) << "the counters do not count";
  EXPECT_LE(counts.codes, counts.sealed / 2 + kFiles + kFiles / 10);
  EXPECT_LE(counts.randoms * 20, counts.sealed);
}

// libIPSec_MB has all keys of AES-256-GCM, where it is installed: OpenSSL takes several times as
// long.
TEST(EncryptionLibraryGate, OpenSslSealsAndOpensNoText) {
  if (crypto::GcmKey::expand(*crypto::SecretKey::random()) == nullptr) {
    GTEST_SKIP() << "no libIPSec_MB";
  }
  const auto texts = [] { return counts.sealed + counts.opened; };
  const auto before = texts();
  const test::TempDirectory directory;
  const std::string path = directory.path() + "/r";
  auto creation = test::encrypted();
  creation.encryption->cipher = "aes-256-gcm";  // Measured, the other one may be faster.
  must(Repository::create(path, test::small_chunks(Codec::kZstd), creation));
  const auto of_creation = texts();
  {
    const auto repository = test::reopen(path, test::with_key(test::quiet_options()));
    store_small_files(*repository);
    EXPECT_TRUE(must(repository->check({}, {})).damages.empty());
  }
  EXPECT_LE(of_creation - before, 100U);
  EXPECT_EQ(texts(), of_creation);
}

TEST_F(EncryptionGate, AnEncryptedRepositoryIsOnePercentLonger) {
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

/// Returns the bytes of all stored values of some tables of a catalog, and the number of values.
std::pair<double, double> stored_values(const std::string& repository,
                                        std::initializer_list<const char*> tables) {
  meta::EnvOptions options;
  options.tables = meta::catalog::kTables;
  options.optional_tables = meta::catalog::kTablesOptional;
  options.read_only = true;
  options.without_keys = true;
  const auto catalog = must(meta::Env::open(repository + "/catalog", options));
  const auto txn = must(meta::ReadTxn::begin(catalog));
  double bytes = 0;
  double count = 0;
  for (const char* const table : tables) {
    auto cursor = must(meta::StoredCursor::open(txn, table));
    for (auto record = must(cursor.next()); record; record = must(cursor.next())) {
      bytes += static_cast<double>(record->value.size());
      ++count;
    }
  }
  return {bytes, count};
}

// Files so small that the catalog is a fiftieth of the repository, in two versions. The values of
// nodes and locations are the same in both repositories, but for their padding, nonces and tags.
TEST_F(EncryptionGate, SmallFilesTakeOnePercentMoreWithoutPadding) {
  struct Sizes {
    double net = 0;
    double value_bytes = 0;
    double values = 0;
  };
  const auto sizes_of = [](bool encrypted) {
    const test::TempDirectory directory;
    const std::string path = directory.path() + "/r";
    RepositoryParameters parameters;
    parameters.codec = Codec::kNone;
    must(Repository::create(path, parameters, encrypted ? test::encrypted() : CreateOptions{}));
    Sizes sizes;
    {
      const auto repository = test::reopen(
          path, encrypted ? test::with_key(test::quiet_options()) : test::quiet_options());
      const auto series = must(repository->create_series("s")).id;
      for (const std::uint64_t round : {0, 1}) {
        const auto name = "v" + std::to_string(round);
        const auto number = must(repository->open_version(series, name, test::folder())).number;
        const auto version = must(repository->writer(series));
        for (std::uint64_t i = 0; i < 4 * kFiles; ++i) {
          auto content = test::noise(250 + i * 7919 % 3600, i);
          if (round != 0 && i % 10 == 0) ++content.front();
          test::write_file(*version, kRootIno, "file-" + std::to_string(i), content);
        }
        must(repository->seal(series, number, ""));
      }
      must(repository->arrange(series, {}));
      const auto stats = must(repository->stats());
      sizes.net = static_cast<double>(stats.frame_bytes + stats.index_bytes + stats.catalog_bytes -
                                      stats.catalog_free_bytes);
    }
    std::tie(sizes.value_bytes, sizes.values) = stored_values(path, {"nodes", "locations"});
    return sizes;
  };
  const auto plain = sizes_of(false);
  const auto sealed = sizes_of(true);
  ASSERT_EQ(sealed.values, plain.values);
  constexpr double kSealBytes = crypto::kNonceBytes + crypto::kTagBytes;
  const double padding = sealed.value_bytes - plain.value_bytes - kSealBytes * sealed.values;
  RecordProperty("plain bytes", std::to_string(plain.net));
  RecordProperty("sealed bytes", std::to_string(sealed.net));
  RecordProperty("padding of values", std::to_string(padding));
  EXPECT_GE(sealed.values, 500);
  EXPECT_GE(padding, sealed.values) << "each value has padding";
  EXPECT_LE(padding, 64 * sealed.values);
  EXPECT_LE(sealed.net - padding, 1.01 * plain.net);
}

/// Counts what reading an image cost.
struct Cost {
  double requests = 0;
  double read_bytes = 0;
  double opened_bytes = 0;
  double direct_bytes = 0;  // Read past the page cache.
  double faults = 0;        // Pages of memory that the process touched first.
};

double page_faults() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_minflt);
}

constexpr std::size_t kImageBytes = std::size_t{24} << 20;

/// Stores an image that does not compress, and reads it by `read`.
Cost cost_of_reads(bool encrypted, const std::function<void(FileReader&)>& read) {
  const test::TempDirectory directory;
  const std::string path = directory.path() + "/r";
  must(Repository::create(path, {}, encrypted ? test::encrypted() : CreateOptions{}));
  auto options = encrypted ? test::with_key(test::quiet_options()) : test::quiet_options();
  {
    const auto repository = test::reopen(path, options);
    const auto series = must(repository->create_series("s")).id;
    const auto number = must(repository->open_version(series, "v", test::folder())).number;
    const auto version = must(repository->writer(series));
    test::write_file(*version, kRootIno, "image", test::noise(kImageBytes, 7));
    must(repository->seal(series, number, ""));
  }
  options.read_only = true;
  const auto repository = test::reopen(path, options);
  const auto series = must(repository->find_series("s")).id;
  const auto version =
      must(repository->reader(series, must(repository->versions(series)).front().number));
  const auto file = must(version->open(test::find(*version, "image")));
  const auto opened_before = counts.opened_bytes.load();
  const auto direct_before = counts.direct_bytes.load();
  ::malloc_trim(0);  // Memory of earlier tests would need no faults.
  const auto faults_before = page_faults();
  read(*file);
  const auto faults = page_faults() - faults_before;
  const auto metric = [&](const char* name) {
    return static_cast<double>(test::metric(*repository, name));
  };
  return {metric("varve_restore_requests_total"), metric("varve_restore_read_bytes_total"),
          static_cast<double>(counts.opened_bytes - opened_before),
          static_cast<double>(counts.direct_bytes - direct_before), faults};
}

void record(const Cost& plain, const Cost& sealed) {
  const auto note = [](const std::string& name, double value) {
    testing::Test::RecordProperty(name, std::to_string(value));
  };
  note("plain requests", plain.requests);
  note("sealed requests", sealed.requests);
  note("plain read bytes", plain.read_bytes);
  note("sealed read bytes", sealed.read_bytes);
  note("opened bytes", sealed.opened_bytes);
  note("plain direct bytes", plain.direct_bytes);
  note("sealed direct bytes", sealed.direct_bytes);
  note("plain page faults", plain.faults);
  note("sealed page faults", sealed.faults);
}

TEST_F(EncryptionGate, AReaderInOrderMakesFewMoreRequests) {
  const auto read = [](FileReader& file) {
    std::vector<std::byte> out(std::size_t{128} << 10);
    for (std::uint64_t at = 0; at < kImageBytes; at += out.size()) must(file.read(at, out));
  };
  const auto plain = cost_of_reads(false, read);
  const auto sealed = cost_of_reads(true, read);
  record(plain, sealed);
  // A plain repository makes 25 to 30, which depends on the threads. One for each run of windows
  // would be 145.
  EXPECT_LE(sealed.requests, 64);
  EXPECT_LE(sealed.read_bytes, 1.15 * plain.read_bytes);
  EXPECT_GE(sealed.opened_bytes, double{kImageBytes}) << "the counters do not count";
  EXPECT_LE(sealed.opened_bytes, 1.05 * double{kImageBytes});
}

// The windows that a reader keeps have 4 MiB, which are 1,024 pages of 4 KiB.
TEST_F(EncryptionGate, AReaderInOrderMakesFewMorePageFaults) {
  std::string huge_pages;
  std::getline(std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"), huge_pages);
  if (huge_pages.empty() || huge_pages.find("[never]") != std::string::npos)
    GTEST_SKIP() << "no huge pages";
  const auto read = [](FileReader& file) {
    std::vector<std::byte> out(std::size_t{128} << 10);
    for (std::uint64_t at = 0; at < kImageBytes; at += out.size()) must(file.read(at, out));
  };
  // The least of a few runs: threads and free huge pages make some more.
  auto excess = std::numeric_limits<double>::max();
  for (int run = 0; run < 3; ++run) {
    const auto plain = cost_of_reads(false, read);
    const auto sealed = cost_of_reads(true, read);
    record(plain, sealed);
    excess = std::min(excess, sealed.faults - plain.faults);
  }
  EXPECT_LE(excess, 400);
}

TEST_F(EncryptionGate, ARandomReaderOpensLittleMoreThanItWants) {
  constexpr std::size_t kReads = 400;
  constexpr std::size_t kReadBytes = std::size_t{64} << 10;
  const auto read = [](FileReader& file) {
    std::mt19937 random(3);
    std::vector<std::byte> out(kReadBytes);
    for (std::size_t i = 0; i < kReads; ++i) {
      must(file.read(random() % ((kImageBytes - kReadBytes) >> 12) << 12, out));
    }
  };
  const auto plain = cost_of_reads(false, read);
  const auto sealed = cost_of_reads(true, read);
  record(plain, sealed);
  EXPECT_LE(sealed.requests, 1.02 * plain.requests);
  EXPECT_LE(sealed.read_bytes, 1.25 * plain.read_bytes);
  EXPECT_LE(sealed.opened_bytes, 1.6 * double{kReads * kReadBytes});
  // The other bytes of the windows go to the page cache, for the next reads.
  EXPECT_LE(sealed.direct_bytes, plain.direct_bytes);
}

}  // namespace
}  // namespace varve
