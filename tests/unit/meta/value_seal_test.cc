// SPDX-License-Identifier: Apache-2.0
// Tests encrypted environments: which keys open them, what their files show, and changed records.
#include "meta/value_seal.h"

#include <gtest/gtest.h>
#include <lmdb.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include "base/coding.h"
#include "io/posix_file_system.h"
#include "meta/lmdb.h"
#include "meta/page_check.h"
#include "meta/probe.h"
#include "support/file_content.h"
#include "support/repeated_random.h"
#include "support/sealed_pairs.h"
#include "support/temp_repository.h"
#include "support/test_keys.h"

namespace varve::meta {
namespace {

using varve::test::code_of;
using varve::test::must;
using varve::test::test_keys;

constexpr std::array<const char*, 2> kSealedTables = {"first", "second"};

class ValueSealTest : public testing::Test {
 protected:
  static EnvOptions options(EnvKeys keys) {
    EnvOptions made;
    made.tables = kSealedTables;
    made.keys = std::move(keys);
    return made;
  }
  static EnvKeys keys(std::uint8_t seed = 1, const std::string& place = "here") {
    return {test_keys(seed), crypto::Purpose::kOverlay, place};
  }
  Env open(const EnvKeys& with = keys()) { return must(Env::open(path(), options(with))); }
  static void put(const Env& env, TableIndex table, std::string_view key, std::string_view value) {
    auto txn = must(WriteTxn::begin(env));
    must(txn.put(table, key, value));
    must(txn.commit());
  }
  std::string path() { return directory_.path(); }
  std::string image() {
    std::ifstream in(path() + "/data.mdb", std::ios::binary);
    return varve::test::rest_of(in);
  }
  // Returns the stored bytes of a record, without the checksum.
  static std::string stored(const Env& env, TableIndex table, std::string_view key) {
    const auto txn = must(ReadTxn::begin(env));
    MDB_val k{key.size(), const_cast<char*>(key.data())};
    MDB_val v{};
    EXPECT_EQ(mdb_get(txn.raw(), env.table(table), &k, &v), 0);
    return {static_cast<const char*>(v.mv_data), v.mv_size - 4};
  }

  varve::test::TempDirectory directory_;
};

TEST_F(ValueSealTest, OnlyItsOwnKeysOpenAnEnvironment) {
  put(open(), 0, "key", "value");
  const auto opens = [&](const EnvKeys& with, bool read_only) {
    auto made = options(with);
    made.read_only = read_only;
    return code_of(Env::open(path(), made));
  };
  for (const bool read_only : {false, true}) {
    EXPECT_EQ(opens(keys(2), read_only), ErrorCode::kCorrupt) << "another key";
    EXPECT_EQ(opens(keys(1, "there"), read_only), ErrorCode::kCorrupt) << "another place";
    EXPECT_EQ(opens({test_keys(), crypto::Purpose::kCatalog, "here"}, read_only),
              ErrorCode::kCorrupt)
        << "another purpose";
    EXPECT_EQ(opens({}, read_only), ErrorCode::kCorrupt) << "no key";
    auto made = options(keys());
    made.read_only = read_only;
    const auto env = must(Env::open(path(), made));
    EXPECT_EQ(must(must(ReadTxn::begin(env)).get(0, "key")), "value");
  }
}

// An attacker could replace an encrypted environment by a plain one.
TEST_F(ValueSealTest, PlainEnvironmentDoesNotOpenWithAKey) {
  static_cast<void>(must(Env::open(path(), options({}))));
  EXPECT_EQ(code_of(Env::open(path(), options(keys()))), ErrorCode::kCorrupt);
  auto reading = options(keys());
  reading.read_only = true;
  EXPECT_EQ(code_of(Env::open(path(), reading)), ErrorCode::kCorrupt);
}

TEST_F(ValueSealTest, EmptyEnvironmentThatMustExistGetsNoNewKey) {
  EnvOptions none;
  static_cast<void>(must(Env::open(path(), none)));
  auto made = options(keys());
  made.must_exist = true;
  EXPECT_EQ(code_of(Env::open(path(), made)), ErrorCode::kCorrupt);
}

TEST_F(ValueSealTest, RecordsOfNumbersHaveAShorterPadding) {
  constexpr std::array<const char*, 2> kPaddedTables = {"locations", "others"};
  auto made = options(keys());
  made.tables = kPaddedTables;
  const auto env = must(Env::open(path(), made));
  const std::map<std::size_t, std::array<std::size_t, 2>> padded = {
      {0, {16, 32}}, {1, {16, 32}}, {15, {16, 32}}, {16, {32, 32}}, {31, {32, 32}}, {32, {64, 64}}};
  for (const auto& [bytes, lengths] : padded) {
    for (const TableIndex table : {TableIndex{0}, TableIndex{1}}) {
      const std::string value(bytes, '\0');  // Zeros are the hardest to tell from the padding.
      put(env, table, "key", value);
      EXPECT_EQ(stored(env, table, "key").size(), lengths[table] + ValueSeal::kExtraBytes) << bytes;
      EXPECT_EQ(must(must(ReadTxn::begin(env)).get(table, "key")), value);
    }
  }
}

TEST_F(ValueSealTest, EqualValuesAreSealedDifferently) {
  const auto env = open();
  std::set<std::string> seen;
  std::set<std::string> nonces;
  auto txn = must(WriteTxn::begin(env));
  for (int i = 0; i < 300; ++i) must(txn.put(0, std::to_string(i), "the same value"));
  must(txn.commit());
  for (int i = 0; i < 300; ++i) {
    const auto bytes = stored(env, 0, std::to_string(i));
    EXPECT_EQ(bytes.size(), 32 + ValueSeal::kExtraBytes);
    seen.insert(bytes);
    nonces.insert(bytes.substr(0, crypto::kNonceBytes));
  }
  put(env, 0, "0", "the same value");
  nonces.insert(stored(env, 0, "0").substr(0, crypto::kNonceBytes));
  EXPECT_EQ(seen.size(), 300U);
  EXPECT_EQ(nonces.size(), 301U);
}

// Also pages that commits freed, and values of many pages.
TEST_F(ValueSealTest, FileShowsNeitherValuesNorNames) {
  const std::string name = "a-secret-name";
  const std::string canary = "a secret value of many bytes ";
  {
    const auto env = open();
    for (int round = 0; round < 20; ++round) {
      auto txn = must(WriteTxn::begin(env));
      for (int i = 0; i < 50; ++i) {
        std::string value;
        for (int n = 0; n <= i * round; ++n) value += canary;
        must(txn.put(0, env.key_of_name(base::be32(1), name + std::to_string(i)), value));
        if (i % 3 == round % 3) must(txn.erase(0, env.key_of_name(base::be32(1), name)));
      }
      must(txn.commit());
    }
    put(env, 1, env.key_of_name("", name), canary);
  }
  const auto file = image();
  EXPECT_EQ(file.find(name), std::string::npos);
  EXPECT_EQ(file.find(canary), std::string::npos);
  EXPECT_EQ(file.find("secret"), std::string::npos);
}

TEST_F(ValueSealTest, NamesInKeysDependOnNamePrefixAndEnvironment) {
  std::string elsewhere;
  {
    const test::TempDirectory other;
    elsewhere = must(Env::open(other.path(), options(keys()))).key_of_name("1", "name");
  }
  const auto env = open();
  const auto key = env.key_of_name("1", "name");
  EXPECT_EQ(key.size(), 1U + 16U);
  EXPECT_EQ(key, env.key_of_name("1", "name"));
  EXPECT_EQ(key, open().key_of_name("1", "name")) << "after reopening";
  EXPECT_NE(key, elsewhere);
  EXPECT_NE(key.substr(1), env.key_of_name("2", "name").substr(1));
  EXPECT_NE(key, env.key_of_name("1", "named"));
}

// Stores sealed bytes with the checksum that they need, as an attacker would.
void forge(const Env& env, TableIndex table, std::string_view key, std::string sealed) {
  const auto sum =
      XXH3_64bits_withSeed(sealed.data(), sealed.size(), XXH3_64bits(key.data(), key.size()));
  base::ByteWriter(sealed).u32(static_cast<std::uint32_t>(sum));
  auto txn = must(WriteTxn::begin(env));
  MDB_val k{key.size(), const_cast<char*>(key.data())};
  MDB_val v{sealed.size(), sealed.data()};
  ASSERT_EQ(mdb_put(txn.raw(), env.table(table), &k, &v, 0), 0);
  must(txn.commit());
}

ErrorCode read(const Env& env, TableIndex table, std::string_view key) {
  const auto txn = must(ReadTxn::begin(env));
  auto cursor = must(Cursor::open(txn, table));
  const auto code = code_of(txn.get(table, key));
  EXPECT_EQ(code_of(cursor.seek(key)), code);
  return code;
}

TEST_F(ValueSealTest, ChangedOrMovedRecordIsCorrupt) {
  const auto env = open();
  put(env, 0, "key", "value");
  put(env, 0, "other", "value");
  const auto sealed = stored(env, 0, "key");
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    auto changed = sealed;
    changed[i] = static_cast<char>(changed[i] ^ 0x40);
    forge(env, 0, "key", changed);
    EXPECT_EQ(read(env, 0, "key"), ErrorCode::kCorrupt) << i;
  }
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{27}, sealed.size() - 1}) {
    forge(env, 0, "key", sealed.substr(0, bytes));
    EXPECT_EQ(read(env, 0, "key"), ErrorCode::kCorrupt) << bytes;
  }
  forge(env, 0, "other", sealed);
  EXPECT_EQ(read(env, 0, "other"), ErrorCode::kCorrupt) << "the value of another key";
  forge(env, 1, "key", sealed);
  EXPECT_EQ(read(env, 1, "key"), ErrorCode::kCorrupt) << "the value of another table";
  forge(env, 0, "key", sealed);
  EXPECT_EQ(must(must(ReadTxn::begin(env)).get(0, "key")), "value");
}

TEST_F(ValueSealTest, PageChecksAcceptAnEncryptedEnvironment) {
  {
    const auto env = open();
    put(env, 0, "key", "value");
    must(check_pages(env, kSealedTables));
  }
  must(check_pages(path(), kSealedTables));
  const auto files = io::make_posix_file_system();
  for (const bool read_only : {false, true}) {
    auto made = options(keys());
    made.read_only = read_only;
    made.must_exist = true;
    const auto opened = must(EnvFiles::open(*files, path(), made));
    must(probe_environment(opened, made));
    EXPECT_TRUE(must(survives_reading(opened, made)));
  }
}

// For programs that verify or move records, on a host without the keys.
TEST_F(ValueSealTest, WithoutKeysRecordsAreReadAsTheyAreStored) {
  std::string sealed;
  {
    const auto env = open();
    put(env, 1, "key", "value");
    sealed = stored(env, 1, "key");
  }
  auto made = options({});
  made.read_only = true;
  made.without_keys = true;
  const auto env = must(Env::open(path(), made));
  EXPECT_EQ(must(must(ReadTxn::begin(env)).get(1, "key")), sealed);
}

// The values that a walk passed do not stay in memory, and one that a caller keeps stays valid.
TEST_F(ValueSealTest, ValueOutlivesTheCursorsNextStep) {
  const auto env = open();
  for (int i = 0; i < 50; ++i)
    put(env, 0, base::be32(static_cast<std::uint32_t>(i)), test::noise(300, 7));
  const auto txn = must(ReadTxn::begin(env));
  auto cursor = must(Cursor::open(txn, 0));
  const auto first = must(cursor.seek(""));
  while (must(cursor.next())) {
  }
  EXPECT_EQ(first->value, test::noise(300, 7));
}

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

// Made from docs/FORMAT.md by the Python package `cryptography`.
TEST_F(ValueSealTest, PaddingHidesTheLengthsOfValues) {
  const auto env = open();
  constexpr std::size_t kBytesMax = 5000;
  // Values that end with zeros, and values that end with ones.
  const auto value = [](std::size_t bytes) {
    return std::string(bytes, bytes % 2 == 0 ? '\0' : '\1');
  };
  auto writing = must(WriteTxn::begin(env));
  for (std::size_t n = 0; n <= kBytesMax; ++n) must(writing.put(0, std::to_string(n), value(n)));
  must(writing.commit());
  std::map<std::size_t, std::set<std::size_t>> lengths;  // Of values, by those of sealed ones.
  for (std::size_t n = 0; n <= kBytesMax; ++n) {
    {
      const auto txn = must(ReadTxn::begin(env));
      ASSERT_EQ(*must(txn.get(0, std::to_string(n))), value(n)) << n;
    }
    lengths[stored(env, 0, std::to_string(n)).size() - ValueSeal::kExtraBytes].insert(n);
  }
  for (const auto& [padded, values] : lengths) {
    EXPECT_EQ(padded % (padded <= 256 ? 32 : 256), 0U);
    EXPECT_GT(padded, *values.rbegin());
    EXPECT_LE(padded, *values.begin() + (padded <= 256 ? 32 : 256));
  }
  EXPECT_EQ(lengths.size(), 8U + 19U);
}

TEST_F(ValueSealTest, KnownAnswers) {
  const auto record = from_hex(
      "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f6465666768696a6b6c6d6e6f"
      "7410fd7985f29d0d8d5c0605f2791624");
  const auto sealed = from_hex(
      "c8c9cacbcccdcecfd0d1d2d3f1c24020a9da2918f555c86af23a5d4222d7e300"
      "2700ffe5a34dc95802c4790add2236a739277d98a93aef2a8ef0cde6");
  EnvKeys known = keys();
  known.ring = test_keys(1, "00112233445566778899aabbccddeeff");
  const auto seal = must(ValueSeal::open(known, record));
  EXPECT_EQ(seal->record(), record);
  EXPECT_EQ(must(seal->open("first", "key", sealed)), "value");
  std::string out(sealed.size(), '\0');
  seal->seal("first", "key", {}, "value", std::as_writable_bytes(std::span(out)));
  EXPECT_EQ(must(seal->open("first", "key", out)), "value");
  EXPECT_EQ(seal->hash_of("1", "name"), from_hex("9d7499b360b716625e2c0a70661d720d"));
}

// As two futures of a virtual machine that goes back to a snapshot.
TEST_F(ValueSealTest, RandomBytesThatRepeatSealNoTwoValuesAlike) {
  const test::SealedPairs pairs;
  const test::RepeatedRandom repeated;
  const std::string copy = path() + "/copy";
  {
    const auto env = open();
    put(env, 0, "key", "before");
  }
  std::filesystem::create_directory(copy);
  std::filesystem::copy_file(path() + "/data.mdb", copy + "/data.mdb");
  const auto one = open();
  const auto other = must(Env::open(copy, options(keys())));
  for (const auto* const value : {"one", "two", "one"}) put(one, 0, "key", value);
  for (const auto* const value : {"Two", "One"}) put(other, 0, "key", value);
  put(one, 1, "key", "in another table");
  EXPECT_NE(stored(one, 0, "key"), stored(other, 0, "key"));
  EXPECT_EQ(pairs.counts().repeated, 0U);
  EXPECT_EQ(pairs.counts().equal, 2U);  // The value stored twice; the number of texts in both.
  EXPECT_EQ(must(must(ReadTxn::begin(other)).get(0, "key"))->view(), "One");
}

}  // namespace
}  // namespace varve::meta
